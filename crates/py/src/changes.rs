// SPDX-License-Identifier: MIT OR Apache-2.0
//! Telling the one task that awaits a gather that its lanes have changed.

use crate::error::Error;
use pyo3::prelude::*;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file that becomes readable when the lanes change, once a task has awaited them.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    file: OnceLock<OwnedFd>,
    awaited: AtomicBool,
}

impl Changes {
    /// The one task begins. A second would take the file's news from it.
    pub(crate) fn begin(&self) -> PyResult<()> {
        if self.awaited.swap(true, Ordering::Relaxed) {
            return Err(Error::new_err("another task awaits this gather; one at a time can"));
        }
        Ok(())
    }

    pub(crate) fn end(&self) {
        self.awaited.store(false, Ordering::Relaxed);
    }

    /// The file, unreadable until the lanes change again. To be called while they cannot.
    pub(crate) fn listen(&self) -> Result<BorrowedFd<'_>, Errno> {
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

    /// The lanes have changed.
    pub(crate) fn tell(&self) {
        if let Some(file) = self.file.get() {
            // Fails only if nobody listened for 2^64 - 2 changes.
            let _ = rustix::io::write(file, &1_u64.to_ne_bytes());
        }
    }
}
