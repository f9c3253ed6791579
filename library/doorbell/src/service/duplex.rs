// SPDX-License-Identifier: MIT OR Apache-2.0
//! Both directions to one process.

use super::ends::Ends;
use super::name;
use crate::channel::{Iter, Message, Receiver, RecvError, SendError, Sender};
use crate::peer::{PeerId, Untrusted};
use crate::rendezvous::{Connection, Join, RendezvousError, join_one_of};
use crate::select::{Parts, Source};
use crate::wait::Adaptive;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The lane from the client to the service, and the one back.
pub(super) const REQUESTS: u32 = 0;
pub(super) const ANSWERS: u32 = 1;

/// Both directions to one process: what [`connect`] gives, and
/// [`Service::accept`](super::Service::accept).
///
/// The other process is not trusted: messages are copied, a lie is an error
/// ([`RecvError::Violation`]).
#[derive(Debug)]
pub struct Duplex {
    sender: Sender<Untrusted>,
    receiver: Receiver<Untrusted>,
    peer: PeerId,
    ends: Ends,
}

impl Duplex {
    pub(super) fn over(connection: &Connection, send: u32, receive: u32) -> Result<Self, RendezvousError> {
        // Nobody else has had the segment: whoever holds an end of it already is the peer, who must not.
        Ok(Self {
            sender: Sender::attach(connection, send)?,
            receiver: Receiver::attach(connection, receive)?,
            peer: connection.peer().id(),
            ends: Ends::over(Arc::clone(connection.hold())),
        })
    }

    /// Of a client.
    pub(crate) fn of_client(connection: &Connection) -> Result<Self, RendezvousError> {
        Self::over(connection, REQUESTS, ANSWERS)
    }

    /// Who is at the other end.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// Sends `message`. Waits while there is no room.
    ///
    /// # Errors
    /// As [`Sender::send`].
    pub fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
        self.sender.send(message)
    }

    /// The next message, copied. Waits while there is none.
    ///
    /// # Errors
    /// As [`Receiver::recv`].
    pub fn recv(&mut self) -> Result<Vec<u8>, RecvError> {
        let mut message = Vec::new();
        self.receiver.recv_into(&mut message)?;
        Ok(message)
    }

    /// The next message, copied, if there is one.
    ///
    /// # Errors
    /// As [`Receiver::try_recv`].
    pub fn try_recv(&mut self) -> Result<Option<Vec<u8>>, RecvError> {
        Ok(self.receiver.try_recv()?.map(Message::into_vec))
    }

    /// The next message, copied. Waits up to `timeout`; `None` if none came.
    ///
    /// # Errors
    /// As [`Receiver::recv_timeout`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Option<Vec<u8>>, RecvError> {
        Ok(self.receiver.recv_timeout(timeout)?.map(Message::into_vec))
    }

    /// All messages from now on, until the other process has left or died.
    pub fn iter(&mut self) -> Iter<'_, Untrusted, Adaptive> {
        self.receiver.iter()
    }

    /// For ends that are sent to the other process, and those it sends. A clone works on when this
    /// was [`split`](Self::split).
    pub fn ends(&self) -> &Ends {
        &self.ends
    }

    /// The sending end, for deadlines, batches and messages that are written in place.
    pub fn sender(&mut self) -> &mut Sender<Untrusted> {
        &mut self.sender
    }

    /// The receiving end, for deadlines and event loops.
    pub fn receiver(&mut self) -> &mut Receiver<Untrusted> {
        &mut self.receiver
    }

    /// The two ends, for two threads.
    pub fn split(self) -> (Sender<Untrusted>, Receiver<Untrusted>) {
        (self.sender, self.receiver)
    }
}

impl Source for Duplex {
    fn look(&mut self) -> bool {
        self.receiver.look()
    }

    fn parts<'a>(&'a mut self, parts: &mut Parts<'a>) {
        self.receiver.parts(parts);
    }
}

impl<'a> IntoIterator for &'a mut Duplex {
    type Item = Result<Vec<u8>, RecvError>;
    type IntoIter = Iter<'a, Untrusted, Adaptive>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Connects to the service `name` of this user or root; see [`listen`](super::listen). It is looked
/// for in each of the [folders](super::folders) that are this user's alone.
///
/// # Errors
/// [`RendezvousError::NoOwner`] if nobody listens there now ([`connect_timeout`] waits for
/// somebody); else as [`Join::at`].
pub fn connect(name: impl AsRef<Path>) -> Result<Duplex, RendezvousError> {
    connect_by(name, &Join::default())
}

/// As [`connect`], and waits up to `timeout` for the service to be there, at its start or after it
/// died, and for its answer, in all. (If `timeout` is zero, as [`connect`] does.)
///
/// # Errors
/// As [`connect`]; [`RendezvousError::TimedOut`] if it is there and does not answer in time.
pub fn connect_timeout(name: impl AsRef<Path>, timeout: Duration) -> Result<Duplex, RendezvousError> {
    connect_by_timeout(name, &Join::default(), timeout)
}

/// As [`connect_timeout`], with a say as [`connect_by`] has; the
/// patience of `join` is asked only if `timeout` is zero.
///
/// # Errors
/// As [`connect_timeout`].
pub fn connect_by_timeout(
    name: impl AsRef<Path>,
    join: &Join,
    timeout: Duration,
) -> Result<Duplex, RendezvousError> {
    let whole = Some(timeout).filter(|timeout| !timeout.is_zero());
    let connection = join_one_of(join, || name::paths(name.as_ref()), whole)?;
    Duplex::of_client(&connection)
}

/// As [`connect`], with a say in whose service it may be, and how long to wait for its answer.
///
/// # Errors
/// As [`connect`].
pub fn connect_by(name: impl AsRef<Path>, join: &Join) -> Result<Duplex, RendezvousError> {
    let connection = join_one_of(join, || name::paths(name.as_ref()), None)?;
    Duplex::of_client(&connection)
}
