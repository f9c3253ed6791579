// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors away from those of standard input, output and error.
//!
//! A process that has closed one of the three gets its number for the
//! next file that is opened, and what prints there afterwards is written
//! into that: over a segment, to a peer. So a file that is kept is moved.

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::ftruncate;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Resource, getrlimit};

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

/// Gives the file `size` bytes.
///
/// # Errors
/// [`Errno::FBIG`] beyond what this process may write to a file; else as `ftruncate`.
pub(crate) fn set_size(file: impl AsFd, size: u64) -> Result<(), Errno> {
    may_have_size(size)?;
    #[expect(clippy::disallowed_methods, reason = "its one caller, behind the look at the limit")]
    ftruncate(file, size)
}

/// May a file have `size` bytes? Beyond RLIMIT_FSIZE the kernel does not just refuse, of memory
/// (memfd) neither: it sends SIGXFSZ, which ends a process that is not prepared for it.
///
/// # Errors
/// [`Errno::FBIG`] if not.
pub(crate) fn may_have_size(size: u64) -> Result<(), Errno> {
    match getrlimit(Resource::Fsize).current {
        Some(most) if size > most => Err(Errno::FBIG),
        _ => Ok(()),
    }
}
