// SPDX-License-Identifier: MIT OR Apache-2.0
//! Telling the one task that awaits a receiving end that its files have changed.

use crate::error::{Error, of_wait};
use doorbell::WaitError;
use pyo3::prelude::*;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::os::fd::IntoRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file that becomes readable when the end is closed or its lanes change, once a task has awaited it.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    file: OnceLock<OwnedFd>,
    awaited: AtomicBool,
}

impl Changes {
    /// The one task begins. A second would take the file's news from it.
    pub(crate) fn begin(&self) -> PyResult<()> {
        if self.awaited.swap(true, Ordering::Relaxed) {
            return Err(Error::new_err("another task awaits this; one at a time can"));
        }
        Ok(())
    }

    pub(crate) fn end(&self) {
        self.awaited.store(false, Ordering::Relaxed);
    }

    /// Duplicates of `files`, and of the file that tells of changes, which is unreadable until there are any. To be called
    /// while there can be none. The numbers are the caller's to close: those of `files` are a stranger's once their end is
    /// closed, when an event loop still knows them.
    pub(crate) fn watch(&self, files: &[BorrowedFd<'_>]) -> PyResult<Vec<i32>> {
        let failed = |errno| of_wait(WaitError::Os { call: "fcntl(F_DUPFD_CLOEXEC)", errno });
        let all = files.iter().copied().map(Ok).chain([self.listen()]);
        let duplicates: Vec<OwnedFd> =
            all.map(|file| fcntl_dupfd_cloexec(file?, 0)).collect::<Result<_, _>>().map_err(failed)?;
        Ok(duplicates.into_iter().map(IntoRawFd::into_raw_fd).collect())
    }

    fn listen(&self) -> Result<BorrowedFd<'_>, Errno> {
        let file = match self.file.get() {
            Some(file) => file,
            None => {
                let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
                self.file.get_or_init(|| made)
            }
        };
        match rustix::io::read(file, &mut [0; 8]) {
            Ok(_) | Err(Errno::AGAIN) => Ok(file.as_fd()),
            Err(errno) => Err(errno),
        }
    }

    /// The files have changed.
    pub(crate) fn tell(&self) {
        if let Some(file) = self.file.get() {
            // Fails only if nobody listened for 2^64 - 2 changes.
            let _ = rustix::io::write(file, &1_u64.to_ne_bytes());
        }
    }
}
