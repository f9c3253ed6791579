// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors of ends that go over a connection's socket.
//!
//! An end that is sent is a socket whose other end is its maker's, with the maker's offer in it
//! already: whoever opens it says nothing, so the maker waits for nobody.

use super::hold::ConnectionHold;
use super::host::offer_to;
use super::packet::{END, expect, peer_at, send_at_once, try_receive};
use super::patience::Patience;
use super::{Connection, Join, RendezvousError, Segment, Side};
use crate::origin::Hold;
use crate::peer::{Trust, Untrusted};
use doorbell_core::layout::MAKER;
use doorbell_core::violation::PeerViolation;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketType};
use std::sync::Arc;
use std::time::Duration;

impl ConnectionHold {
    /// Sends the peer the socket of an end. Does not wait.
    pub(crate) fn send_end(&self, end: &OwnedFd) -> Result<(), RendezvousError> {
        self.check_ours()?;
        send_at_once(self.file(), &[END], &[end.as_fd()]).map_err(|error| match error {
            RendezvousError::NoAnswer(Errno::AGAIN) => RendezvousError::EndsNotTaken,
            error => error,
        })
    }

    /// Receives what `send_end` sent. `None` if nothing came within `timeout`.
    pub(crate) fn receive_end(&self, timeout: Duration) -> Result<Option<OwnedFd>, RendezvousError> {
        self.check_ours()?;
        let patience = Patience::of(timeout);
        let mut descriptors = Vec::new();
        loop {
            if let Some([magic]) = try_receive(&self.file(), &mut descriptors)? {
                expect("end", magic, END)?;
                break;
            }
            if patience.is_over() {
                return Ok(None);
            }
            patience.wait(&self.file())?;
        }
        let got = descriptors.len() as u64;
        let violation = PeerViolation::Descriptors { got, announced: 1 };
        Ok(Some(descriptors.pop().filter(|_| got == 1).ok_or(violation)?))
    }

    fn check_ours(&self) -> Result<(), RendezvousError> {
        if self.is_ours() { Ok(()) } else { Err(RendezvousError::Forked) }
    }
}

/// Is it a socket as ends are? What a peer sent may be any file.
pub(crate) fn is_end_socket(file: &OwnedFd) -> Result<(), RendezvousError> {
    let is = socket_domain(file) == Ok(AddressFamily::UNIX) && socket_type(file) == Ok(SocketType::SEQPACKET);
    if is { Ok(()) } else { Err(PeerViolation::BadValue { field: "kind of file", value: 0 }.into()) }
}

/// The host's part towards whoever will have the other end of
/// `socket`, one day. Nothing is waited for.
pub(crate) fn host_ahead(socket: OwnedFd, segment: &Arc<Segment>) -> Result<Connection, RendezvousError> {
    // The socket tells who made the pair, and not who will have the
    // other end: that process has no number here.
    let peer = peer_at(&socket, Some(0))?;
    let (under, holder) = offer_to::<Untrusted>(&socket, segment)?;
    Connection::new(segment, under, peer, socket, holder, Side::Host)
}

impl<T: Trust> Join<T> {
    /// The joiner's part, where the offer is in the socket already.
    pub(crate) fn ahead(&self, socket: OwnedFd) -> Result<Connection<T>, RendezvousError> {
        let peer = peer_at(&socket, None)?;
        self.check(&peer)?;
        let mut descriptors = Vec::new();
        let offer = try_receive(&socket, &mut descriptors)?
            .ok_or(PeerViolation::BadValue { field: "offer", value: 0 })?;
        let segment = Arc::new(self.segment(&socket, offer, descriptors, &Patience::of(Duration::ZERO))?);
        let under = segment.admit::<T>()?;
        Connection::new(&segment, under, peer, socket, MAKER, Side::Joiner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::send;
    use super::super::socket;
    use super::{END, host_ahead, is_end_socket};
    use crate::rendezvous::{Connection, Join, Offer, RendezvousError, Segment};
    use doorbell_core::channel::layout::Lanes;
    use rustix::fd::AsFd;
    use std::sync::Arc;
    use std::time::Duration;

    fn met() -> (Connection, Connection) {
        let segment = Arc::new(Segment::new(&Offer::of_lanes(Lanes::new(2, 2, 4096).unwrap())).unwrap());
        let (ours, theirs) = socket::pair().unwrap();
        let host = host_ahead(ours, &segment).unwrap();
        (host, Join::default().ahead(theirs).unwrap())
    }

    /// What comes over the socket is the peer's to choose, and the
    /// next end is none the worse for it.
    #[test]
    fn what_is_no_end_is_refused_and_the_next_end_is_taken() {
        let (host, joiner) = met();
        let (lying, hold) = (joiner.hold().file(), host.hold());
        let (one, other) = socket::pair().unwrap();
        let (pipe, _writes) = rustix::pipe::pipe().unwrap();
        let now = Duration::ZERO;
        assert!(hold.receive_end(now).unwrap().is_none(), "nothing was sent");
        send(lying, &[END], &[]).unwrap();
        send(lying, &[END], &[one.as_fd(), other.as_fd()]).unwrap();
        send(lying, &[7], &[one.as_fd()]).unwrap();
        send(lying, &[END, 7], &[one.as_fd()]).unwrap();
        for _ in 0..4 {
            assert!(matches!(hold.receive_end(now), Err(RendezvousError::Violation(_))));
        }
        send(lying, &[END], &[pipe.as_fd()]).unwrap();
        let no_socket = hold.receive_end(now).unwrap().unwrap();
        assert!(matches!(is_end_socket(&no_socket), Err(RendezvousError::Violation(_))));
        joiner.hold().send_end(&one).unwrap();
        let socket = hold.receive_end(now).unwrap().unwrap();
        is_end_socket(&socket).unwrap();
        // A socket with nothing in it: nobody is waited for.
        let opened = Join::default().ahead(socket).map(|_: Connection| ());
        assert!(matches!(opened, Err(RendezvousError::Violation(_))), "{opened:?}");
    }
}
