// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls of the C library that neither rustix nor the standard library wraps, and how they report.

use std::ffi::CString;
use std::io;

use rustix::io::Errno;

use super::{OpenError, Unavailable};

/// A key under which the probes ask for objects of System V: "bell"
/// in ASCII. Whether there is one does not matter.
pub(super) const PROBE_KEY: libc::key_t = i32::from_be_bytes(*b"bell");

/// The error of the call just made.
pub(super) fn errno() -> Errno {
    // A number that is none of the kernel's cannot come from `errno`.
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

/// What a call returned that says -1 when it refuses.
#[inline]
pub(crate) fn result<T: Into<i64> + Copy>(value: T) -> Result<T, Errno> {
    if value.into() == -1 { Err(errno()) } else { Ok(value) }
}

/// `name` as the C library takes it.
pub(super) fn c_string(name: &str) -> Result<CString, OpenError> {
    CString::new(name).map_err(OpenError::of("CString::new"))
}

/// Asking for an object that nobody has made must fail with its absence and with nothing else.
pub(super) fn absent_or_made<T>(call: &str, asked: Result<T, Errno>) -> Result<(), Unavailable> {
    match asked {
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(Unavailable::because(format!("{call} is refused here: {error}"))),
    }
}
