// SPDX-License-Identifier: MIT OR Apache-2.0
//! One at a time at a path.

use super::{RendezvousError, os};
use crate::errno::checked;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, fstat, open, stat, unlink};
use rustix::io::Errno;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Held by who makes or replaces what is at a path: the lock on a file beside it, which goes with
/// this value. One that a killed process left is taken by the next.
#[derive(Debug)]
pub(super) struct PathLock {
    path: PathBuf,
    _file: OwnedFd,
}

/// Its holder makes a few system calls. Who takes longer is stopped,
/// or keeps others out on purpose.
const PATIENCE: Duration = Duration::from_secs(10);

impl PathLock {
    /// # Errors
    /// [`RendezvousError::Owned`] if somebody holds it for too long.
    pub(super) fn take(path: &Path) -> Result<Self, RendezvousError> {
        let served = path;
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let file = open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(os("open"))?;
            // Whoever had it may have removed it in the meantime: what we locked then is no lock.
            if try_lock(&file)? && is_at(&file, &path)? {
                return Ok(Self { path, _file: file });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(RendezvousError::Owned { path: served.to_owned() })
    }
}

/// Is `file` what `path` names now?
fn is_at(file: &OwnedFd, path: &Path) -> Result<bool, RendezvousError> {
    let held = fstat(file).map_err(os("fstat"))?;
    match stat(path) {
        Ok(named) => Ok((named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(RendezvousError::Os { call: "stat", errno }),
    }
}

/// Takes the lock of `file`. `false` if somebody holds it.
///
/// An open-file-description lock: unlike a POSIX lock it does not go
/// when another descriptor of the file is closed.
fn try_lock(file: &OwnedFd) -> Result<bool, RendezvousError> {
    // SAFETY: all bytes zero is a value of this plain struct.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_len = 1;
    // SAFETY: `lock` is valid for the call.
    match checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut lock) }) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(errno) => Err(RendezvousError::Os { call: "F_OFD_SETLK", errno }),
    }
}

impl Drop for PathLock {
    fn drop(&mut self) {
        // While it is still locked.
        let _ = unlink(&self.path);
    }
}
