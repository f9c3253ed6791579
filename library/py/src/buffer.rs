// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Python hands over to be sent: anything with a buffer, of whatever elements and shape.

use doorbell::channel::Slot;
use doorbell::peer::Trust;
use doorbell::wait::Wait;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::CStr;
use std::fmt;
use std::marker::PhantomData;

/// The buffer of an argument: whatever `memoryview` takes.
#[derive(Debug)]
pub(crate) struct Buffer {
    exported: Exported,
    /// Is it of `bytes`, which nobody can change?
    fixed: bool,
}

/// A buffer that an object exports until this is dropped.
struct Exported(Box<ffi::Py_buffer>);

impl fmt::Debug for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exported").field("length", &self.0.len).finish_non_exhaustive()
    }
}

// SAFETY: what it says of the buffer does not change, and the buffer is read with the interpreter's
// lock or copied as one that others change.
unsafe impl Send for Exported {}
// SAFETY: as above.
unsafe impl Sync for Exported {}

impl Exported {
    fn of(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: `view` is valid for writes, and stays where it is until it is released.
        match unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut *view, ffi::PyBUF_FULL_RO) } {
            0 => Ok(Self(view)),
            _ => Err(PyErr::fetch(object.py())),
        }
    }

    fn length(&self) -> usize {
        usize::try_from(self.0.len).unwrap_or(0)
    }

    /// Does it lie in one piece, in the order in which a copy in C would have it?
    fn is_contiguous(&self) -> bool {
        const IN_C: std::ffi::c_char = b'C' as _;
        // SAFETY: it is exported.
        unsafe { ffi::PyBuffer_IsContiguous(&raw const *self.0, IN_C) == 1 }
    }

    /// Are its elements objects of this interpreter, which are addresses elsewhere?
    fn holds_objects(&self) -> bool {
        if self.0.format.is_null() {
            return false;
        }
        // SAFETY: a format that is there ends with a zero byte.
        let format = unsafe { CStr::from_ptr(self.0.format) }.to_bytes();
        // Between colons are the names of fields.
        format.split(|byte| *byte == b':').step_by(2).any(|codes| codes.contains(&b'O'))
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        // SAFETY: exported and not released; PyO3 attaches to the interpreter, if it is there, as all of
        // this is dropped with arguments of a call.
        Python::attach(|_| unsafe { ffi::PyBuffer_Release(&mut *self.0) });
    }
}

impl FromPyObject<'_, '_> for Buffer {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        // Not of a class derived from it, which may export another buffer.
        let fixed = object.is_exact_instance_of::<PyBytes>();
        let exported = Exported::of(object)?;
        if exported.holds_objects() {
            return Err(PyTypeError::new_err(
                "its elements are Python objects, which mean nothing in another process; send it \
                 by send_object",
            ));
        }
        Ok(Self { exported, fixed })
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
        if !self.exported.is_contiguous() {
            return self.gathered(py).map(Bytes::Copied);
        }
        let (at, length) = (self.exported.0.buf.cast::<u8>(), self.exported.length());
        if length == 0 {
            return Ok(Bytes::Fixed(&[]));
        }
        if self.fixed {
            // SAFETY: an exported buffer is valid for reads of its bytes, in one piece if it is contiguous,
            // as long as it is not released; those of `bytes` never change.
            return Ok(Bytes::Fixed(unsafe { std::slice::from_raw_parts(at, length) }));
        }
        Ok(Bytes::Changing(Changing { at: at as usize, length, buffer: PhantomData }))
    }

    pub(crate) fn length(&self) -> usize {
        self.exported.length()
    }

    /// A copy of its elements in the order of C, by the interpreter.
    fn gathered(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        const IN_C: std::ffi::c_char = b'C' as _;
        let mut bytes = Vec::<u8>::with_capacity(self.exported.length());
        // SAFETY: it is exported, and there is room for as many bytes as it has, all of which are written.
        let copied = unsafe {
            ffi::PyBuffer_ToContiguous(
                bytes.as_mut_ptr().cast(),
                &raw const *self.exported.0,
                self.exported.0.len,
                IN_C,
            )
        };
        if copied != 0 {
            return Err(PyErr::fetch(py));
        }
        // SAFETY: as above.
        unsafe { bytes.set_len(self.exported.length()) };
        Ok(bytes)
    }

    /// A copy of its bytes.
    pub(crate) fn copy(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        Ok(match self.bytes(py)? {
            Bytes::Fixed(bytes) => bytes.to_vec(),
            Bytes::Copied(bytes) => bytes,
            Bytes::Changing(changing) => {
                let mut bytes = Vec::<u8>::with_capacity(changing.length);
                // SAFETY: valid for reads while the buffer is exported, and there is room for as many.
                // Whoever writes there without the interpreter's lock changes what is copied.
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
    /// Gives them to `take`, in order, in pieces that nobody changes.
    pub(crate) fn in_pieces(&self, mut take: impl FnMut(&[u8])) {
        /// Stays in the cache between the two copies.
        const PIECE: usize = 4096;
        match self.borrowed() {
            Ok(bytes) => take(bytes),
            Err(changing) => {
                let mut piece = [0; PIECE];
                for begin in (0..changing.length).step_by(PIECE) {
                    let length = PIECE.min(changing.length - begin);
                    // SAFETY: as in `copy`; the piece is this function's own, and no longer.
                    unsafe {
                        piece
                            .as_mut_ptr()
                            .copy_from_nonoverlapping((changing.at + begin) as *const u8, length);
                    }
                    take(&piece[..length]);
                }
            }
        }
    }

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
        // SAFETY: valid for reads while the buffer is exported, and the slot for writes of its bytes.
        // Python may show other parts of the ring, hence a copy that may overlap. Whoever writes to
        // either meanwhile changes what is sent.
        unsafe { slot.as_mut_ptr().copy_from(self.at as *const u8, length) };
    }
}
