// SPDX-License-Identifier: MIT OR Apache-2.0
//! One at a time at a path.

use super::named::{is_at, try_lock};
use super::{RendezvousError, os};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open, unlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Held by who makes or replaces what is at a path: the lock on a file beside it, which goes with this value. One that a
/// killed process left is taken by the next.
#[derive(Debug)]
pub(super) struct PathLock {
    path: PathBuf,
    _file: OwnedFd,
}

/// Its holder makes a few system calls. Who takes longer is stopped, or keeps others out on purpose.
const PATIENCE: Duration = Duration::from_secs(10);

impl PathLock {
    /// # Errors
    /// [`RendezvousError::Owned`] if somebody holds it for too long.
    pub(super) fn take(path: &Path) -> Result<Self, RendezvousError> {
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
        Err(RendezvousError::Owned)
    }
}

impl Drop for PathLock {
    fn drop(&mut self) {
        // While it is still locked.
        let _ = unlink(&self.path);
    }
}
