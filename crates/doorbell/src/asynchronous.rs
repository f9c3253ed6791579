// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bell in tokio.

use crate::bell::Bell;
use crate::error::WaitError;
use crate::fd::BellFd;
use crate::wait::{Adaptive, Wait};
use rustix::io::Errno;
use std::num::NonZeroU32;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A handle of a bell that a tokio task waits on. It never occupies a thread.
///
/// ```
/// use doorbell::{AsyncBell, Bell};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let waiter: Bell = Bell::new().unwrap();
/// let ringer = waiter.clone();
/// let mut waiter = AsyncBell::new(waiter).unwrap();
/// std::thread::spawn(move || ringer.ring());
/// assert_eq!(waiter.wait().await.unwrap().get(), 1);
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncBell<W: Wait = Adaptive> {
    file: AsyncFd<BellFd<W>>,
}

impl<W: Wait> AsyncBell<W> {
    /// Registers the bell with the runtime of the calling task.
    ///
    /// # Errors
    /// [`WaitError::NoSeat`]; [`WaitError::Os`] if the runtime cannot watch the file.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled, as [`AsyncFd`] does.
    pub fn new(bell: Bell<W>) -> Result<Self, WaitError> {
        // SAFETY: `BellFd` owns the site that owns the eventfd, and gives the same one for ever: neither its site nor
        // its index ever changes. It is not lent out mutably, except to `heard`, which changes neither.
        let file = unsafe { AsyncFd::register_with_interest(bell.into_fd()?, Interest::READABLE) };
        let file = file.map_err(|error| WaitError::Os {
            call: "epoll_ctl",
            errno: Errno::from_io_error(&error.into()).unwrap_or(Errno::IO),
        })?;
        Ok(Self { file })
    }

    /// Waits for a ring this handle has not heard. Returns how many there were.
    ///
    /// Cancel safe: rings are taken in the last step, after which nothing is awaited.
    ///
    /// # Errors
    /// As [`Bell::wait`].
    pub async fn wait(&mut self) -> Result<NonZeroU32, WaitError> {
        loop {
            // Rings that came before the runtime noticed need no trip through it.
            if let Some(rings) = self.file.get_mut().heard()? {
                return Ok(rings);
            }
            let mut ready = self.file.readable_mut().await.map_err(|error| WaitError::Os {
                call: "epoll_wait",
                errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
            })?;
            // Before `heard` looks: a token written after this wakes us again.
            ready.clear_ready();
        }
    }
}
