// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pointers from C: told apart from NULL before they are used.

use crate::error::{Failure, doorbell_status, guard_all};
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A handle that a C program lends for one call.
///
/// # Safety
/// NULL or valid for reads during `'a`, and not freed meanwhile: the header's contract.
pub(crate) unsafe fn lent<'a, T>(handle: *const T, what: &'static str) -> Result<&'a T, Failure> {
    // SAFETY: by contract.
    unsafe { handle.as_ref() }.ok_or_else(|| Failure::null(what))
}

/// Where a result goes.
#[derive(Debug)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// # Safety
    /// NULL or valid for writes until the call returns: the header's contract.
    pub(crate) unsafe fn new(place: *mut T, what: &'static str) -> Result<Self, Failure> {
        if place.is_null() { Err(Failure::null(what)) } else { Ok(Self(place)) }
    }

    pub(crate) fn put(self, value: T) {
        // SAFETY: not NULL, hence valid (contract of `new`). What was there is C's and has nothing to drop.
        unsafe { self.0.write(value) };
    }
}

impl<T: Copy> Out<T> {
    /// Writes what holds until there is a result.
    pub(crate) fn put_first(self, value: T) -> Self {
        // SAFETY: as in `put`.
        unsafe { self.0.write(value) };
        self
    }
}

impl<T> Out<*mut T> {
    pub(crate) fn put_handle(self, handle: T) {
        self.put(Box::into_raw(Box::new(handle)));
    }
}

/// Runs a call whose result goes to `place`, which the caller names `what`.
///
/// # Safety
/// As [`Out::new`].
pub(crate) unsafe fn guard_into<T>(
    place: *mut T,
    what: &'static str,
    call: impl FnOnce() -> Result<T, Failure>,
) -> doorbell_status {
    guard_all(|| {
        // SAFETY: by contract.
        let out = unsafe { Out::new(place, what) }?;
        out.put(call()?);
        Ok(())
    })
}

/// As [`guard_into`], for a call whose result becomes a handle.
///
/// # Safety
/// As [`Out::new`].
pub(crate) unsafe fn guard_new<T>(
    place: *mut *mut T,
    what: &'static str,
    call: impl FnOnce() -> Result<T, Failure>,
) -> doorbell_status {
    // SAFETY: by contract.
    unsafe { guard_into(place, what, || Ok(Box::into_raw(Box::new(call()?)))) }
}

/// What a call results in, or `otherwise` if it fails.
pub(crate) fn guard_or<T>(otherwise: T, call: impl FnOnce() -> Result<T, Failure>) -> T {
    let mut result = otherwise;
    guard_all(|| {
        result = call()?;
        Ok(())
    });
    result
}

/// Writes a result that the caller may not want.
///
/// # Safety
/// NULL or valid for writes: the header's contract.
pub(crate) unsafe fn put_if_wanted<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: by contract.
        unsafe { place.write(value) };
    }
}

/// Takes a handle back to free it.
///
/// # Safety
/// NULL or made by [`Out::put_handle`] and not freed yet: the header's contract.
pub(crate) unsafe fn free<T>(handle: *mut T) {
    guard_all(|| {
        if !handle.is_null() {
            // SAFETY: by contract.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
}

/// # Safety
/// NULL or a string ended by a zero byte, valid during `'a`: the header's contract.
pub(crate) unsafe fn path<'a>(path: *const c_char) -> Result<&'a Path, Failure> {
    if path.is_null() {
        return Err(Failure::null("path"));
    }
    // SAFETY: by contract.
    Ok(Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes())))
}

/// # Safety
/// Valid for reads of `length` bytes during `'a`, or `length` is 0: the header's contract.
pub(crate) unsafe fn bytes<'a>(from: *const u8, length: usize) -> Result<&'a [u8], Failure> {
    match (from.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Failure::null("bytes")),
        // SAFETY: by contract.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(from, length) }),
    }
}
