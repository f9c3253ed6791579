// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests, each with its reply.
//!
//! Either begins with eight bytes: the number of the request among
//! its client's, in the machine's order.

use super::duplex::Duplex;
use super::{ClientId, Service, ServiceError};
use crate::channel::{RecvError, SendError, Sender};
use crate::deadline::Deadline;
use crate::peer::Untrusted;
use doorbell_core::violation::PeerViolation;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

const NUMBER: usize = 8;

/// A client that is answered: each reply comes to the request that it
/// is for, in whatever order the service replies.
///
/// ```
/// use doorbell::service::Caller;
///
/// # let folder = std::env::temp_dir().join(format!("doorbell-calls-{}", std::process::id()));
/// # let name = folder.with_extension("sock");
/// let mut service = doorbell::listen(&name)?;
/// // In another process, as a rule.
/// let client = std::thread::spawn(move || {
///     let mut service = Caller::new(doorbell::connect(&name).unwrap());
///     let (first, second) = (service.ask(b"one").unwrap(), service.ask(b"two").unwrap());
///     assert_eq!(service.reply(second, None).unwrap().unwrap(), b"two, indeed");
///     assert_eq!(service.reply(first, None).unwrap().unwrap(), b"one, indeed");
///     service.call(b"three").unwrap()
/// });
/// for _ in 0..3 {
///     let request = service.recv_request()?;
///     let reply = [&request.body, &b", indeed"[..]].concat();
///     service.reply(&request, &reply)?;
/// }
/// assert_eq!(client.join().unwrap(), b"three, indeed");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Caller {
    service: Duplex,
    next: u64,
    /// Of the requests that were made and not given up, the replies that came already.
    open: BTreeMap<u64, Option<Vec<u8>>>,
}

/// A request that a [`Caller`] made, until its reply was received.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked(u64);

impl Caller {
    /// Of a connection to a service that [replies](Service::reply).
    pub fn new(service: Duplex) -> Self {
        Self { service, next: 0, open: BTreeMap::new() }
    }

    /// Sends `request`, and waits for its reply.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call(&mut self, request: &[u8]) -> Result<Vec<u8>, CallError> {
        let asked = self.ask(request)?.0;
        loop {
            if let Some(reply) = self.wait_for(asked, None)? {
                return Ok(reply);
            }
        }
    }

    /// As [`call`](Self::call), but waits no longer than `timeout` for the reply. `None` if it did
    /// not come; if it comes later, it is dropped, and taken for no other's.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call_timeout(&mut self, request: &[u8], timeout: Duration) -> Result<Option<Vec<u8>>, CallError> {
        let asked = self.ask(request)?;
        let deadline = Deadline::after(timeout);
        let number = asked.0;
        let reply = self.reply(asked, Some(deadline))?;
        self.open.remove(&number);
        Ok(reply)
    }

    /// Sends `request`. Waits while there is no room.
    ///
    /// # Errors
    /// [`CallError::Send`].
    pub fn ask(&mut self, request: &[u8]) -> Result<Asked, CallError> {
        let number = self.next;
        send(self.service.sender(), number, request, None).map_err(CallError::Send)?;
        self.next += 1;
        self.open.insert(number, None);
        Ok(Asked(number))
    }

    /// The reply to what was `asked`. Waits until `deadline`, if there is one; `None` if it did not
    /// come: then it may be asked for again by nobody, and is dropped when it comes.
    ///
    /// # Errors
    /// [`CallError::Recv`].
    #[expect(clippy::needless_pass_by_value, reason = "a reply is received once")]
    pub fn reply(&mut self, asked: Asked, deadline: Option<Deadline>) -> Result<Option<Vec<u8>>, CallError> {
        let reply = self.wait_for(asked.0, deadline);
        self.open.remove(&asked.0);
        reply
    }

    fn wait_for(&mut self, asked: u64, deadline: Option<Deadline>) -> Result<Option<Vec<u8>>, CallError> {
        loop {
            if let Some(Some(_)) = self.open.get(&asked) {
                return Ok(self.open.remove(&asked).flatten());
            }
            let receiver = self.service.receiver();
            let Some(message) = receiver.recv_deadline(deadline).map_err(CallError::Recv)? else {
                return Ok(None);
            };
            let (number, reply) =
                parts(message.into_vec()).map_err(|violation| CallError::Recv(violation.into()))?;
            // Of one that was given up nobody wants it any more.
            if let Some(open) = self.open.get_mut(&number) {
                *open = Some(reply);
            }
        }
    }
}

/// A request of a [`Caller`].
#[derive(Debug)]
pub struct Request {
    /// Whose.
    pub client: ClientId,
    /// What it asks.
    pub body: Vec<u8>,
    number: u64,
}

impl Service {
    /// The next request of any client that is a [`Caller`]. Waits while there is none.
    ///
    /// # Errors
    /// As [`recv`](Self::recv). A client that sends what is no request is hung up on.
    pub fn recv_request(&mut self) -> Result<Request, ServiceError> {
        loop {
            if let Some(request) = self.recv_request_deadline(None)? {
                return Ok(request);
            }
        }
    }

    /// As [`recv_request`](Self::recv_request), but waits no longer than until `deadline`, if there
    /// is one. `None` if none came.
    ///
    /// # Errors
    /// As [`recv_request`](Self::recv_request).
    pub fn recv_request_deadline(
        &mut self,
        deadline: Option<Deadline>,
    ) -> Result<Option<Request>, ServiceError> {
        loop {
            let mut message = Vec::new();
            let Some(client) = self.recv_into(&mut message, deadline)? else { return Ok(None) };
            match parts(message) {
                Ok((number, body)) => return Ok(Some(Request { client, body, number })),
                Err(violation) => {
                    self.refusals.add(&violation.into());
                    self.disconnect(client);
                }
            }
        }
    }

    /// Replies to `request`, if there is room: as [`send`](Self::send).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn reply(&mut self, request: &Request, reply: &[u8]) -> Result<(), SendError> {
        if !self.is_ours_at_once() {
            return Err(SendError::Forked);
        }
        let sender = self.sender(request.client).ok_or(SendError::Closed)?;
        send(sender, request.number, reply, Some(Deadline::after(Duration::ZERO))).map_err(
            |error| match error {
                SendError::TimedOut => SendError::Full,
                error => error,
            },
        )
    }
}

fn send(
    sender: &mut Sender<Untrusted>,
    number: u64,
    body: &[u8],
    deadline: Option<Deadline>,
) -> Result<(), SendError> {
    let length = NUMBER + body.len();
    let mut slot = match deadline {
        None => sender.reserve(length)?,
        Some(deadline) => sender.reserve_deadline(length, deadline)?,
    };
    slot.write(0, &number.to_ne_bytes());
    slot.write(NUMBER, body);
    slot.commit()
}

/// The number of a message, and the rest of it.
fn parts(message: Vec<u8>) -> Result<(u64, Vec<u8>), PeerViolation> {
    let (length, available) = (message.len() as u64, NUMBER as u64);
    let Some((number, _)) = message.split_first_chunk() else {
        return Err(PeerViolation::LengthOutOfRange { length, available });
    };
    let number = u64::from_ne_bytes(*number);
    let mut body = message;
    body.drain(..NUMBER);
    Ok((number, body))
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// The request was not sent.
    Send(SendError),
    /// No reply will come.
    Recv(RecvError),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(error) => write!(f, "the request was not sent: {error}"),
            Self::Recv(error) => write!(f, "no reply will come: {error}"),
        }
    }
}

impl std::error::Error for CallError {}
