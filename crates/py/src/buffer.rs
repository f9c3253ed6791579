// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Python hands over to be sent: anything with a buffer, of whatever elements.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;

/// The buffer of an argument: bytes, a memoryview, an array of any type.
#[derive(Debug)]
pub(crate) struct Buffer(PyUntypedBuffer);

impl FromPyObject<'_, '_> for Buffer {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        PyUntypedBuffer::get(&object).map(Self)
    }
}

impl Buffer {
    /// Its bytes in the order in which a copy in C would have them.
    pub(crate) fn copy(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        if !self.0.is_c_contiguous() {
            // Elements that are not bytes are refused, with the reason.
            return self.0.as_typed::<u8>()?.to_vec(py);
        }
        let mut bytes = Vec::<u8>::with_capacity(self.0.len_bytes());
        // SAFETY: an exported buffer is valid for reads of its bytes, in one piece if it is contiguous, as long as it is not
        // released, and there is room for as many. Whoever writes there without the interpreter's lock changes what is sent.
        unsafe {
            bytes.as_mut_ptr().copy_from_nonoverlapping(self.0.buf_ptr().cast(), self.0.len_bytes());
            bytes.set_len(self.0.len_bytes());
        }
        Ok(bytes)
    }
}
