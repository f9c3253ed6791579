// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unix socket pairs of the three types, with send buffers as large as the kernel grants.

use super::depth;
use crate::channels::link::{End, Link, Place, link};
use crate::channels::many::{SENDERS, gather};
use rustix::fd::OwnedFd;
use rustix::net::sockopt::{set_socket_send_buffer_size, socket_send_buffer_size};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};

struct Ends<const S: usize> {
    socket: OwnedFd,
    buffer: Box<[u8; S]>,
}

impl<const S: usize> Ends<S> {
    fn new(socket: OwnedFd) -> Self {
        Self { socket, buffer: vec![0; S].try_into().expect("S bytes") }
    }
}

impl<const S: usize> End<S> for Ends<S> {
    fn send(&mut self, message: &[u8; S]) {
        let mut sent = 0;
        // At once, except through a stream's full buffer.
        while sent < S {
            sent += send(&self.socket, &message[sent..], SendFlags::empty()).expect("the partner lives");
        }
    }
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        let mut got = 0;
        while got < S {
            let (some, _) =
                recv(&self.socket, &mut self.buffer[got..], RecvFlags::empty()).expect("the partner lives");
            assert!(some > 0, "the partner lives");
            got += some;
        }
        read(&self.buffer);
    }
}

/// What the kernel takes of a send buffer for a message beyond its bytes, at most.
const OVERHEAD: usize = 1024;

/// Each with a send buffer for `messages` messages. How many datagrams wait to be received is
/// limited beside that, for all senders together: `net.unix.max_dgram_qlen`, ten unless it is set.
fn pair<const S: usize>(kind: SocketType, messages: usize) -> Result<(OwnedFd, OwnedFd), String> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
        .map_err(|errno| format!("socketpair: {errno}"))?;
    for socket in [&ours, &theirs] {
        // The kernel takes what it may give (`net.core.wmem_max`).
        set_socket_send_buffer_size(socket, messages * (S + OVERHEAD))
            .map_err(|errno| format!("SO_SNDBUF: {errno}"))?;
    }
    let granted = socket_send_buffer_size(&ours).map_err(|errno| format!("SO_SNDBUF: {errno}"))?;
    if kind != SocketType::STREAM && granted < S + OVERHEAD {
        return Err(format!(
            "one message must fit into the send buffer, which net.core.wmem_max keeps at {granted} bytes"
        ));
    }
    Ok((ours, theirs))
}

pub fn open<const S: usize>(kind: SocketType) -> Result<Box<dyn Link>, String> {
    let (ours, theirs) = pair::<S>(kind, depth(S))?;
    link::<S, _, _>(Place::Processes, move || Ends::new(ours), move || Ends::new(theirs))
}

/// All senders share a socket and its buffer: a datagram is sent whole.
pub fn many_datagram<const S: usize>() -> Result<Box<dyn Link>, String> {
    let (ours, theirs) = pair::<S>(SocketType::DGRAM, depth(S) * SENDERS)?;
    let copies = (0..SENDERS).map(|_| theirs.try_clone()).collect::<Result<Vec<_>, _>>();
    let copies = copies.map_err(|error| format!("dup: {error}"))?;
    let theirs = copies.into_iter().map(|socket| move || Ends::new(socket)).collect();
    gather::<S, _, _>(Place::Processes, move || Ends::new(ours), theirs)
}
