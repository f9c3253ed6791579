// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends that are sent to another process.

use crate::rendezvous::{ConnectionHold, RendezvousError, is_end_socket};
use rustix::fd::OwnedFd;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The other end of a [`pair`](super::pair()), which nobody has opened
/// yet. One descriptor: when it is dropped, here or on its way, or the
/// process that has it dies, whoever has the first end is told.
#[derive(Debug)]
pub struct Unopened(pub(super) OwnedFd);

/// The way by which ends go to the process at the other end of a
/// [`Duplex`](super::Duplex), and come from it.
///
/// Ends come in the order in which they were sent. An end that was
/// sent before a message is there when the message is.
#[derive(Clone, Debug)]
pub struct Ends(Arc<ConnectionHold>);

impl Ends {
    pub(super) fn over(hold: Arc<ConnectionHold>) -> Self {
        Self(hold)
    }

    /// Sends `end` to the other process. Does not wait: a few hundred ends are kept by the kernel
    /// until they are received.
    ///
    /// # Errors
    /// [`NotSent`], which has the end again: the other process has
    /// not taken those that were sent before, or is gone.
    pub fn send(&self, end: Unopened) -> Result<(), NotSent> {
        self.0.send_end(&end.0).map_err(|error| NotSent { end, error })
    }

    /// The next end that the other process sent. Waits while there is none.
    ///
    /// # Errors
    /// [`RendezvousError::NoAnswer`] if the other process is gone; [`RendezvousError::Violation`]
    /// if it sent something else.
    pub fn recv(&self) -> Result<Unopened, RendezvousError> {
        loop {
            if let Some(end) = self.recv_timeout(Duration::MAX)? {
                return Ok(end);
            }
        }
    }

    /// As [`recv`](Self::recv), but waits no longer than `timeout`,
    /// and not at all if that is zero. `None` if none came.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Option<Unopened>, RendezvousError> {
        let Some(socket) = self.0.receive_end(timeout)? else { return Ok(None) };
        is_end_socket(&socket)?;
        Ok(Some(Unopened(socket)))
    }
}

/// An end that was not sent, and why.
#[derive(Debug)]
pub struct NotSent {
    /// The end, to be sent again, elsewhere, or opened.
    pub end: Unopened,
    /// Why.
    pub error: RendezvousError,
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the end was not sent: {}", self.error)
    }
}

impl std::error::Error for NotSent {}
