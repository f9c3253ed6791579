// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the socket mechanisms share: pairs connected to each other and to nobody else.

use rustix::net::{
    AddressFamily, Ipv4Addr, SocketAddr, SocketAddrV4, SocketFlags, SocketType, accept_with, bind, connect,
    getsockname, listen, socket_with, socketpair, sockopt,
};
use std::os::fd::OwnedFd;

use super::OpenError;
use super::descriptor::Ends;

/// The end of every socket mechanism's limits.
macro_rules! timed_by_ppoll {
    () => {
        "The timed wait is ppoll(2) before the read: SO_RCVTIMEO counts in scheduler ticks of 1 to \
         10 ms and cannot express 100 µs. A look is recv(2) with MSG_DONTWAIT."
    };
}
pub(super) use timed_by_ppoll;

/// A connected pair of Unix sockets.
pub(super) fn unix_pair(kind: SocketType) -> Result<Ends, OpenError> {
    let (read, write) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
        .map_err(OpenError::of("socketpair"))?;
    Ok(Ends { read, write })
}

/// A TCP connection over the loopback device, without Nagle's delay.
pub(super) fn tcp_pair() -> Result<Ends, OpenError> {
    let listener = on_loopback(SocketType::STREAM)?;
    listen(&listener, 1).map_err(OpenError::of("listen"))?;
    let write = inet(SocketType::STREAM)?;
    let port = address(&listener)?;
    connect(&write, &port).map_err(OpenError::of("connect"))?;
    // The first to come might be a stranger on this machine: the pair
    // is only a pair if the addresses agree.
    let own = address(&write)?;
    loop {
        let read = accept_with(&listener, SocketFlags::CLOEXEC).map_err(OpenError::of("accept4"))?;
        let peer = rustix::net::getpeername(&read).map_err(OpenError::of("getpeername"))?;
        if peer.is_some_and(|peer| SocketAddr::try_from(peer) == Ok(own)) {
            for end in [&read, &write] {
                sockopt::set_tcp_nodelay(end, true).map_err(OpenError::of("setsockopt(TCP_NODELAY)"))?;
            }
            return Ok(Ends { read, write });
        }
    }
}

/// Two UDP sockets on the loopback device, each connected to the other.
pub(super) fn udp_pair() -> Result<Ends, OpenError> {
    let read = on_loopback(SocketType::DGRAM)?;
    let write = on_loopback(SocketType::DGRAM)?;
    connect(&write, &address(&read)?).map_err(OpenError::of("connect"))?;
    connect(&read, &address(&write)?).map_err(OpenError::of("connect"))?;
    Ok(Ends { read, write })
}

fn inet(kind: SocketType) -> Result<OwnedFd, OpenError> {
    socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None).map_err(OpenError::of("socket"))
}

fn on_loopback(kind: SocketType) -> Result<OwnedFd, OpenError> {
    let socket = inet(kind)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).map_err(|error| {
        OpenError::with_cure("bind(127.0.0.1)", error, "bring the loopback device up: `ip link set lo up`")
    })?;
    Ok(socket)
}

fn address(socket: &OwnedFd) -> Result<SocketAddr, OpenError> {
    getsockname(socket).and_then(SocketAddr::try_from).map_err(OpenError::of("getsockname"))
}
