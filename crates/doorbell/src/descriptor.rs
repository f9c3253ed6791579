// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors away from those of standard input, output and error.
//!
//! A process that has closed one of the three gets its number for the next file that is opened, and what prints there
//! afterwards is written into that: over a segment, to a peer. So a file that is kept is moved.

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

/// Standard error's.
const LAST: i32 = 2;

/// The file, at another descriptor if it has one of the three.
pub(crate) fn kept(file: OwnedFd) -> Result<OwnedFd, Errno> {
    if file.as_raw_fd() > LAST { Ok(file) } else { duplicate(&file) }
}

/// Another descriptor of the file.
pub(crate) fn duplicate(file: impl AsFd) -> Result<OwnedFd, Errno> {
    fcntl_dupfd_cloexec(file, LAST + 1)
}
