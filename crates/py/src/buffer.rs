// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Python hands over to be sent: anything with a buffer, of whatever elements.

use doorbell::channel::Slot;
use doorbell::peer::Trust;
use doorbell::wait::Wait;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::marker::PhantomData;

/// The buffer of an argument: bytes, a memoryview, an array of any type.
#[derive(Debug)]
pub(crate) struct Buffer {
    exported: PyUntypedBuffer,
    /// Is it of `bytes`, which nobody can change?
    fixed: bool,
}

impl FromPyObject<'_, '_> for Buffer {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        // Not of a class derived from it, which may export another buffer.
        let fixed = object.is_exact_instance_of::<PyBytes>();
        PyUntypedBuffer::get(&object).map(|exported| Self { exported, fixed })
    }
}

/// What is to be sent, in the order in which a copy in C would have it.
#[derive(Debug)]
pub(crate) enum Bytes<'a> {
    /// It stays as it is.
    Fixed(&'a [u8]),
    /// Other threads may change it meanwhile: it is never borrowed, but copied where it goes.
    Changing(Changing<'a>),
    /// It did not lie in one piece.
    Copied(Vec<u8>),
}

/// `length` bytes at `at` of a buffer that is exported during `'a`.
#[derive(Debug)]
pub(crate) struct Changing<'a> {
    at: usize,
    length: usize,
    buffer: PhantomData<&'a Buffer>,
}

impl Buffer {
    /// Its bytes.
    pub(crate) fn bytes(&self, py: Python<'_>) -> PyResult<Bytes<'_>> {
        if !self.exported.is_c_contiguous() {
            // Elements that are not bytes are refused, with the reason.
            return self.exported.as_typed::<u8>()?.to_vec(py).map(Bytes::Copied);
        }
        let (at, length) = (self.exported.buf_ptr().cast::<u8>(), self.exported.len_bytes());
        if length == 0 {
            return Ok(Bytes::Fixed(&[]));
        }
        if self.fixed {
            // SAFETY: an exported buffer is valid for reads of its bytes, in one piece if it is contiguous, as long as it is not
            // released; those of `bytes` never change.
            return Ok(Bytes::Fixed(unsafe { std::slice::from_raw_parts(at, length) }));
        }
        Ok(Bytes::Changing(Changing { at: at as usize, length, buffer: PhantomData }))
    }

    /// A copy of its bytes.
    pub(crate) fn copy(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        Ok(match self.bytes(py)? {
            Bytes::Fixed(bytes) => bytes.to_vec(),
            Bytes::Copied(bytes) => bytes,
            Bytes::Changing(changing) => {
                let mut bytes = Vec::<u8>::with_capacity(changing.length);
                // SAFETY: valid for reads while the buffer is exported, and there is room for as many. Whoever writes there without
                // the interpreter's lock changes what is copied.
                unsafe {
                    bytes.as_mut_ptr().copy_from_nonoverlapping(changing.at as *const u8, changing.length);
                    bytes.set_len(changing.length);
                }
                bytes
            }
        })
    }
}

impl Bytes<'_> {
    /// Those that can be borrowed; else what is to be copied where it goes.
    pub(crate) fn borrowed(&self) -> Result<&[u8], &Changing<'_>> {
        match self {
            Self::Fixed(bytes) => Ok(bytes),
            Self::Copied(bytes) => Ok(bytes),
            Self::Changing(changing) => Err(changing),
        }
    }
}

impl Changing<'_> {
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Copies it into `slot`, once.
    pub(crate) fn copy_to<T: Trust, W: Wait>(&self, slot: &mut Slot<'_, T, W>) {
        let length = self.length.min(slot.size());
        // SAFETY: valid for reads while the buffer is exported, and the slot for writes of its bytes. Python may show other parts of
        // the ring, hence a copy that may overlap. Whoever writes to either meanwhile changes what is sent.
        unsafe { slot.as_mut_ptr().copy_from(self.at as *const u8, length) };
    }
}
