// SPDX-License-Identifier: MIT OR Apache-2.0
//! A place in a ring, seen through the buffer protocol.

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard};

/// May Python write there?
#[derive(Clone, Copy, Debug)]
pub(crate) enum Access {
    ReadOnly = 1,
    Writable = 0,
}

#[derive(Debug)]
struct Held {
    /// Is it still ours?
    place: bool,
    /// Buffers that are exported: as long as there is one, the place must stay.
    exports: usize,
}

/// `length` bytes at `at`.
///
/// Invariant: while `held.place` is true, they are valid for what `access` says.
#[derive(Debug)]
pub(crate) struct Place {
    at: usize,
    length: usize,
    access: Access,
    held: Mutex<Held>,
}

impl Place {
    /// # Safety
    /// `length` bytes at `at` are valid for reads, and for writes if `access` says so, until
    /// [`give_back`](Self::give_back) calls what it was given.
    pub(crate) unsafe fn new(at: usize, length: usize, access: Access) -> Self {
        Self { at, length, access, held: Mutex::new(Held { place: true, exports: 0 }) }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Gives it back by `back`, once; `None` if that was before.
    /// Refused while there are buffers of it.
    pub(crate) fn give_back<R>(&self, back: impl FnOnce() -> R) -> PyResult<Option<R>> {
        let mut held = self.held();
        if held.exports > 0 {
            return Err(PyBufferError::new_err(format!(
                "{} memoryviews of the message are still there; release them first",
                held.exports
            )));
        }
        Ok(std::mem::take(&mut held.place).then(back))
    }

    /// Exports a buffer of it to CPython, which `owner` keeps.
    ///
    /// # Safety
    /// `view` is valid for writes.
    pub(crate) unsafe fn export(
        &self,
        owner: &Bound<'_, PyAny>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let mut held = self.held();
        if !held.place {
            return Err(PyValueError::new_err("the message was released"));
        }
        let length = ffi::Py_ssize_t::try_from(self.length)
            .map_err(|_| PyBufferError::new_err("the message is too long"))?;
        // SAFETY: `view` is CPython's to be filled in. The place is valid while it is held (invariant),
        // which it is until the last export is released; `owner` is kept by the export.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                owner.as_ptr(),
                self.at as *mut _,
                length,
                self.access as c_int,
                flags,
            )
        };
        if filled != 0 {
            return Err(PyErr::fetch(owner.py()));
        }
        held.exports += 1;
        Ok(())
    }

    /// An exported buffer was released.
    pub(crate) fn unexport(&self) {
        let mut held = self.held();
        held.exports = held.exports.saturating_sub(1);
    }

    /// As `give_back`, for the drop of what owns it: nobody has a
    /// buffer of it, since each keeps the owner.
    pub(crate) fn give_back_at_last<R>(&self, back: impl FnOnce() -> R) {
        std::mem::take(&mut self.held().place).then(back);
    }
}
