// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rendezvous over a Unix socket that stays open.
//!
//! ```text
//! joiner                                  host
//!   | -- hello: magic, version, features -->|
//!   |<-- offer: magic, bells, eventfds,     |
//!   |          the joiner's number, + fds --|
//!   | -- verdict: magic, 0 or a reason ----->|
//!   |           (the socket stays open; its hang-up is the other side's death)
//! ```
//!
//! Who is none of the host's [`Users`](super::Users) is told so, sent nothing else, and hung up on.
//! Whom a side refuses, it tells why ([`Reason`](super::Reason)): the host by an offer without
//! descriptors, the joiner by its verdict.
//!
//! One packet each (`SOCK_SEQPACKET`), eight-byte integers in the machine's byte
//! order. Afterwards only a [publisher](crate::channel::broadcast::Publisher::admit)
//! sends one more: the descriptor of its log.
//!
//! ```
//! use doorbell::rendezvous::{Segment, Offer, Connection, socket};
//! use std::sync::Arc;
//!
//! let (ours, theirs) = socket::pair()?;
//! let joiner = std::thread::spawn(move || -> Result<(), doorbell::rendezvous::RendezvousError> {
//!     let connection = socket::join_over(theirs)?;
//!     connection.bell(0).unwrap().ring();
//!     Ok(())
//! });
//! let segment = Arc::new(Segment::new(&Offer::default())?);
//! let mut bell = segment.bell(0).unwrap();
//! let connection = socket::host_over(ours, &segment)?;
//! bell.wait().unwrap();
//! joiner.join().unwrap()?;
//! # Ok::<(), doorbell::rendezvous::RendezvousError>(())
//! ```

use super::{RendezvousError, os};
use crate::descriptor;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

pub use super::host::{Host, MOST_CALLERS, host_over, host_over_as};
pub use super::join::{Join, join, join_over};
pub use super::patience::{HOST_PATIENCE, JOIN_PATIENCE};

/// Two connected sockets, to meet over.
///
/// # Errors
/// [`RendezvousError::Os`].
pub fn pair() -> Result<(OwnedFd, OwnedFd), RendezvousError> {
    let pair =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    pair.and_then(|(one, other)| Ok((descriptor::kept(one)?, descriptor::kept(other)?)))
        .map_err(os("socketpair"))
}

pub(super) fn new_socket(flags: SocketFlags) -> Result<OwnedFd, RendezvousError> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | flags, None)
        .and_then(descriptor::kept)
        .map_err(os("socket"))
}
