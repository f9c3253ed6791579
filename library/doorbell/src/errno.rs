// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a call that failed reports.

use rustix::io::Errno;
use std::io;

/// Of the standard library's, or of a runtime's.
pub(crate) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Of a function of libc, which has just returned `value`.
pub(crate) fn checked<T: Default + PartialOrd>(value: T) -> Result<T, Errno> {
    if value >= T::default() { Ok(value) } else { Err(errno(&io::Error::last_os_error())) }
}
