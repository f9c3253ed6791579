// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that share this project's memory: those forked before join their parent over sockets.

use doorbell::channel::{Gather, Lanes};
use doorbell::peer::Trust;
use doorbell::rendezvous::socket::{self, Join};
use doorbell::rendezvous::{Connection, Offer, Segment};
use doorbell::wait::Wait;
use rustix::fd::OwnedFd;
use std::sync::Arc;

/// Sockets for so many: the parent's, and theirs.
pub fn sockets(count: usize) -> Result<(Vec<OwnedFd>, Vec<OwnedFd>), String> {
    let pairs = (0..count).map(|_| socket::pair()).collect::<Result<Vec<_>, _>>();
    Ok(pairs.map_err(|error| error.to_string())?.into_iter().unzip())
}

/// Joins the parent.
pub fn join<T: Trust>(socket: OwnedFd) -> Connection<T> {
    // SAFETY: the host is a copy of this program, which follows the protocol.
    unsafe { Join::<T>::of() }.over(socket).expect("the host offers")
}

/// Lets all join, by turns on each of `segments`.
pub fn host<T: Trust>(sockets: Vec<OwnedFd>, segments: &[Arc<Segment>]) -> Vec<Connection<T>> {
    let meet = |(number, socket)| {
        // SAFETY: those who join are copies of this program, which follow the protocol.
        unsafe { socket::host_over_as::<T>(socket, &segments[number % segments.len()]) }
    };
    sockets.into_iter().enumerate().map(meet).collect::<Result<_, _>>().expect("they join")
}

/// On so many segments so many can meet: those who trust each other share one, the others have one each.
pub fn segments<T: Trust>(processes: usize) -> usize {
    if T::TRUSTED { 1 } else { processes }
}

/// Lets all join, and receives from them: each has one of the `lanes` of a segment.
pub fn gather<T: Trust, W: Wait + Default>(
    sockets: Vec<OwnedFd>,
    lanes: Lanes,
) -> (Gather<T, W>, Vec<Connection<T>>) {
    let segment = |_| Arc::new(Segment::new(&Offer::of_lanes(lanes)).expect("memory"));
    let segments: Vec<_> = (0..segments::<T>(sockets.len())).map(segment).collect();
    let connections = host(sockets, &segments);
    let mut gather: Gather<T, W> = Gather::default();
    for (number, connection) in connections.iter().enumerate() {
        gather.add(connection, (number / segments.len()) as u32).expect("free");
    }
    (gather, connections)
}
