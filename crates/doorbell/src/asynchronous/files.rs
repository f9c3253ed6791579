// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files a task waits for, as its runtime knows them.

use super::MOST_TURNS;
use crate::error::WaitError;
use crate::site::Site;
use crate::wait::Listener;
use rustix::fd::OwnedFd;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::io;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;

/// The eventfds of the waiters that a task sleeps as.
#[derive(Debug)]
pub(super) struct Files {
    /// Of the task that made this, whichever polls it.
    runtime: Handle,
    watched: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    /// Whose eventfd it is: the bell's, if that is still there, and which of them.
    site: Weak<Site>,
    index: usize,
    /// A duplicate. The seat may be given up while the runtime still knows the file (a lane that is removed, a subscription
    /// that ends), and whoever takes it next registers the number of the original.
    file: AsyncFd<OwnedFd>,
}

impl Files {
    /// # Panics
    /// Outside a tokio runtime.
    pub(super) fn new() -> Self {
        Self { runtime: Handle::current(), watched: Vec::new() }
    }

    /// Forgets that any file was readable, and has the task woken when one becomes so from now on. Not if one becomes so
    /// again and again: false.
    ///
    /// Before the waiter consumes its tokens and arms: a token that comes after that is a wake-up.
    pub(super) fn forget(&self, cx: &mut Context<'_>) -> Result<bool, WaitError> {
        for Watched { file, .. } in &self.watched {
            let mut turns = 0;
            while let Poll::Ready(ready) = file.poll_read_ready(cx) {
                ready.map_err(|error| failed("epoll_wait", &error))?.clear_ready();
                turns += 1;
                if turns == MOST_TURNS {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Watches the files of `listeners` and no others. Were they watched already? If not, the task is not yet woken by all
    /// of them.
    pub(super) fn watch<'a>(
        &mut self,
        listeners: impl Iterator<Item = &'a mut Listener>,
    ) -> Result<bool, WaitError> {
        let (mut in_place, mut added) = (0, false);
        for listener in listeners {
            let (site, index) = listener.eventfd()?;
            let is_this =
                |watched: &Watched| watched.index == index && watched.site.as_ptr() == Arc::as_ptr(site);
            match self.watched[in_place..].iter().position(is_this) {
                Some(behind) => self.watched.swap(in_place, in_place + behind),
                None => {
                    let file = self.register(fcntl_dupfd_cloexec(&site.eventfds()[index], 0))?;
                    self.watched.push(Watched { site: Arc::downgrade(site), index, file });
                    let last = self.watched.len() - 1;
                    self.watched.swap(in_place, last);
                    added = true;
                }
            }
            in_place += 1;
        }
        self.watched.truncate(in_place);
        Ok(!added)
    }

    fn register(&self, file: Result<OwnedFd, Errno>) -> Result<AsyncFd<OwnedFd>, WaitError> {
        let file = file.map_err(|errno| WaitError::Os { call: "fcntl(F_DUPFD_CLOEXEC)", errno })?;
        let _runtime = self.runtime.enter();
        // SAFETY: an `OwnedFd` is open and the same until it is dropped, and nothing takes it out.
        let file = unsafe { AsyncFd::register_with_interest(file, Interest::READABLE) };
        file.map_err(|error| failed("epoll_ctl", &error.into()))
    }
}

fn failed(call: &'static str, error: &io::Error) -> WaitError {
    WaitError::Os { call, errno: Errno::from_io_error(error).unwrap_or(Errno::IO) }
}
