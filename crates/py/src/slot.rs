// SPDX-License-Identifier: MIT OR Apache-2.0
//! A message that is written where it will lie.

use crate::channel::Sender;
use crate::error::of_send;
use crate::place::Place;
use doorbell::channel::SendError;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ffi::c_int;

/// Room in the ring for a message, written through the buffer protocol.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) sender: Py<Sender>,
    pub(crate) place: Place,
    /// Which reserved it: a forked child has a copy, and must not send what its parent will.
    pub(crate) process: u32,
}

#[pymethods]
impl Slot {
    #[pyo3(signature = (length = None))]
    fn commit(&self, length: Option<usize>) -> PyResult<()> {
        let most = self.place.length();
        let length = length.unwrap_or(most);
        if length > most {
            return Err(PyValueError::new_err(format!("the slot has {most} bytes, and not {length}")));
        }
        if std::process::id() != self.process {
            return Err(of_send(SendError::Forked));
        }
        self.place.give_back(|| self.sender.get().settle(Some(length)))
    }

    fn release(&self) -> PyResult<()> {
        self.place.give_back(|| self.sender.get().settle(None))
    }

    fn __len__(&self) -> usize {
        self.place.length()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Sends all of it, if it was neither sent nor given back yet; gives it back if the block raised.
    #[pyo3(signature = (*exception))]
    fn __exit__(&self, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let raised = exception.get_item(0).is_ok_and(|kind| !kind.is_none());
        if raised { self.release() } else { self.commit(None) }
    }

    /// # Safety
    /// As CPython calls it: `view` is valid for writes.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        // SAFETY: by contract.
        unsafe { slf.get().place.export(slf.as_any(), view, flags) }
    }

    /// # Safety
    /// As CPython calls it: once for each buffer.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.place.unexport();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.place.give_back_at_last(|| self.sender.get().settle(None));
    }
}
