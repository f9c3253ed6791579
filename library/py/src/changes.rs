// SPDX-License-Identifier: MIT OR Apache-2.0
//! Telling tasks that await an end that its files have changed.

use crate::error::{Error, of_wait};
use doorbell::WaitError;
use pyo3::prelude::*;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file that becomes readable, for good, when the end is closed or its lanes change, if a task
/// awaits it then. The next task gets another.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    file: Mutex<Option<OwnedFd>>,
    awaited: AtomicBool,
}

impl Changes {
    /// The one task begins. A second would take the end's tokens from it.
    pub(crate) fn begin(&self) -> PyResult<()> {
        if self.awaited.swap(true, Ordering::Relaxed) {
            return Err(Error::new_err("another task awaits this; one at a time can"));
        }
        Ok(())
    }

    pub(crate) fn end(&self) {
        self.awaited.store(false, Ordering::Relaxed);
    }

    fn file(&self) -> MutexGuard<'_, Option<OwnedFd>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Duplicates of `files`, and of the file that tells of changes, which is
    /// unreadable until there are any. To be called while there can be none.
    /// The numbers are the caller's to close: those of `files` are a stranger's
    /// once their end is closed, when an event loop still knows them.
    pub(crate) fn watch(&self, files: &[BorrowedFd<'_>]) -> PyResult<Vec<i32>> {
        self.duplicates(files)
            .map_err(|errno| of_wait(WaitError::Os { call: "fcntl(F_DUPFD_CLOEXEC)", errno }))
    }

    fn duplicates(&self, files: &[BorrowedFd<'_>]) -> Result<Vec<i32>, Errno> {
        let mut own = self.file();
        let own = match &mut *own {
            Some(file) => file,
            none => none.insert(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?),
        };
        let all = files.iter().copied().chain([own.as_fd()]);
        let all = all.map(|file| fcntl_dupfd_cloexec(file, 0)).collect::<Result<Vec<OwnedFd>, _>>()?;
        Ok(all.into_iter().map(IntoRawFd::into_raw_fd).collect())
    }

    /// The files have changed.
    pub(crate) fn tell(&self) {
        if let Some(file) = self.file().take() {
            // It counts nothing yet, so it can count one.
            let _ = rustix::io::write(file, &1_u64.to_ne_bytes());
        }
    }
}
