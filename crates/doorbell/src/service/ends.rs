// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends that are sent to another process.

use super::duplex::{ANSWERS, Duplex, REQUESTS};
use crate::channel::Lanes;
use crate::rendezvous::{
    ConnectionHold, Join, Offer, RendezvousError, Segment, host_ahead, is_end_socket, socket,
};
use rustix::fd::OwnedFd;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Both directions between whoever has the first and whoever opens the second, with rings of at least `capacity` bytes.
///
/// The second is sent to another process by [`Ends::send`], which opens it or sends it on. What is sent into the first before
/// that waits in the ring.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("doorbell-ends-{}", std::process::id()));
/// # let name = folder.with_extension("sock");
/// let mut service = doorbell::listen(&name)?;
/// // In another process, as a rule.
/// let client = std::thread::spawn(move || {
///     let mut service = doorbell::connect(&name).unwrap();
///     service.send(b"a channel of my own, please").unwrap();
///     let end = service.ends().recv().unwrap();
///     end.open().unwrap().send(b"thanks").unwrap();
/// });
/// let (who, _question) = service.recv()?;
/// let (mut ours, theirs) = doorbell::service::pair(64 << 10)?;
/// service.ends(who).expect("it waits").send(theirs)?;
/// assert_eq!(ours.recv()?, b"thanks");
/// client.join().unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`RendezvousError::CannotLayOut`] if no ring can be that large; [`RendezvousError::Map`], [`RendezvousError::Os`] if there is no
/// memory or no descriptor left.
pub fn pair(capacity: u64) -> Result<(Duplex, Unopened), RendezvousError> {
    let lanes = Lanes::new(2, 2, capacity).ok_or(RendezvousError::CannotLayOut { lanes: 2, capacity })?;
    let segment = Arc::new(Segment::new(&Offer::of_lanes(lanes))?);
    let (ours, theirs) = socket::pair()?;
    let connection = host_ahead(ours, &segment)?;
    Ok((Duplex::over(&connection, REQUESTS, ANSWERS)?, Unopened(theirs)))
}

/// The other end of a [`pair`], which nobody has opened yet. One descriptor: when it is dropped, here or on its way, or the
/// process that has it dies, whoever has the first end is told.
#[derive(Debug)]
pub struct Unopened(OwnedFd);

impl Unopened {
    /// Opens it, if it is of a process of this process's user or root's.
    ///
    /// # Errors
    /// [`RendezvousError::OtherUser`] if another user's process made it; [`RendezvousError::Violation`] if it is no such end; else
    /// [`RendezvousError`].
    pub fn open(self) -> Result<Duplex, RendezvousError> {
        self.open_by(&Join::default())
    }

    /// As [`open`](Self::open), with a say in whose it may be, and how much memory and how many descriptors are taken for it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_by(self, join: &Join) -> Result<Duplex, RendezvousError> {
        Duplex::over(&join.ahead(self.0)?, ANSWERS, REQUESTS)
    }
}

/// The way by which ends go to the process at the other end of a [`Duplex`], and come from it.
///
/// Ends come in the order in which they were sent. An end that was sent before a message is there when the message is.
#[derive(Clone, Debug)]
pub struct Ends(Arc<ConnectionHold>);

impl Ends {
    pub(super) fn over(hold: Arc<ConnectionHold>) -> Self {
        Self(hold)
    }

    /// Sends `end` to the other process. Does not wait: a few hundred ends are kept by the kernel until they are received.
    ///
    /// # Errors
    /// [`NotSent`], which has the end again: the other process has not taken those that were sent before, or is gone.
    pub fn send(&self, end: Unopened) -> Result<(), NotSent> {
        self.0.send_end(&end.0).map_err(|error| NotSent { end, error })
    }

    /// The next end that the other process sent. Waits while there is none.
    ///
    /// # Errors
    /// [`RendezvousError::NoAnswer`] if the other process is gone; [`RendezvousError::Violation`] if it sent something else.
    pub fn recv(&self) -> Result<Unopened, RendezvousError> {
        loop {
            if let Some(end) = self.recv_timeout(Duration::MAX)? {
                return Ok(end);
            }
        }
    }

    /// As [`recv`](Self::recv), but waits no longer than `timeout`, and not at all if that is zero. `None` if none came.
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
