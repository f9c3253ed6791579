// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file a task waits for, as its runtime knows it.

use crate::descriptor;
use crate::errno::errno;
use crate::error::Unmade;
use rustix::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A duplicate: whose file it is may close the original while the runtime still knows it, and
/// whoever opens a file next gets the number of the original.
#[derive(Debug)]
pub(super) struct Watched(AsyncFd<OwnedFd>);

impl Watched {
    /// Known to the runtime of the calling task.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub(super) fn new(file: impl AsFd) -> Result<Self, Unmade> {
        let file = descriptor::duplicate(file).map_err(|errno| ("fcntl(F_DUPFD_CLOEXEC)", errno))?;
        // SAFETY: an `OwnedFd` is open and the same until it is dropped, and nothing takes it out.
        let file = unsafe { AsyncFd::register_with_interest(file, Interest::READABLE) };
        file.map(Self).map_err(|error| ("epoll_ctl", errno(&error.into())))
    }

    /// Forgets that it was readable, and has the task woken when it becomes so from now on. Was it?
    ///
    /// Before the next look at what it tells of: what comes after that is an edge.
    pub(super) fn forget(&self, cx: &mut Context<'_>) -> Result<bool, Unmade> {
        match self.0.poll_read_ready(cx) {
            Poll::Pending => Ok(false),
            Poll::Ready(ready) => {
                ready.map_err(|error| ("epoll_wait", errno(&error)))?.clear_ready();
                Ok(true)
            }
        }
    }
}
