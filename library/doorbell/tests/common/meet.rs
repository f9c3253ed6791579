// SPDX-License-Identifier: MIT OR Apache-2.0
//! Both sides of a rendezvous in this process.

#![allow(dead_code, reason = "each program of tests uses a part of it")]

use doorbell::peer::Trust;
use doorbell::rendezvous::{Connection, Join, RendezvousError, Segment, socket};
use std::sync::Arc;
use std::thread;

/// What one side of a rendezvous comes to.
type Met<T> = Result<Connection<T>, RendezvousError>;

/// A connection of the host of `segment`, and the one that joined.
pub(crate) fn meet(segment: &Arc<Segment>) -> (Connection, Connection) {
    meet_as(segment)
}

/// As `meet`, of those who trust each other or not.
pub(crate) fn meet_as<T: Trust>(segment: &Arc<Segment>) -> (Connection<T>, Connection<T>) {
    // SAFETY: a thread of this program, which follows the protocol.
    let (host, joined) = try_meet(segment, unsafe { Join::of() });
    (host.unwrap(), joined.unwrap())
}

/// What a rendezvous comes to on either side.
pub(crate) fn try_meet<T: Trust>(segment: &Arc<Segment>, join: Join<T>) -> (Met<T>, Met<T>) {
    let (ours, theirs) = socket::pair().unwrap();
    thread::scope(|scope| {
        let joining = scope.spawn(move || join.over(theirs));
        // SAFETY: a thread of this program, which follows the protocol.
        (unsafe { socket::host_over_as(ours, segment) }, joining.join().unwrap())
    })
}
