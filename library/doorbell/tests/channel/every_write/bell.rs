// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two bells and no channel: the child rings back.

use super::{ROUNDS, at_every_write};
use crate::other::{FOREVER, Other};
use doorbell::rendezvous::{Connection, Segment};
use doorbell::wait::{Eventfd, Futex, Wait};
use doorbell::{Bell, WaitError};

const TO_CHILD: u32 = 0;
const TO_PARENT: u32 = 1;

pub(super) fn answer<W: Wait + Default>(connection: &Connection) {
    let mut bell: Bell<W> = connection.bell_waiting_by(TO_CHILD).unwrap();
    let back: Bell<W> = connection.bell_waiting_by(TO_PARENT).unwrap();
    // The first says that it hears.
    back.ring();
    for _ in 1..ROUNDS {
        assert_eq!(bell.wait().unwrap().get(), 1);
        back.ring();
    }
}

/// The bell the child rings, heard from before it comes.
fn ours<W: Wait + Default>(segment: &Segment) -> Bell<W> {
    segment.bell_waiting_by(TO_PARENT).unwrap()
}

/// Rings back until the child goes. Returns how many rings came from it.
fn ring<W: Wait + Default>(bell: &mut Bell<W>, connection: &Connection, _: u64, _: &mut Other) -> u64 {
    let there: Bell<W> = connection.bell_waiting_by(TO_CHILD).unwrap();
    let mut heard = 0;
    loop {
        match bell.wait_timeout(FOREVER) {
            Ok(rings) => {
                heard += u64::from(rings.expect("hung").get());
                there.ring();
            }
            Err(WaitError::PeerGone(peer)) => {
                assert_eq!(peer, connection.peer().id());
                return heard;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Every ring is counted, and every wait armed.
const LEAST: u64 = 2 * ROUNDS - 1;

#[test]
fn at_whichever_write_one_who_rings_dies_its_rings_are_heard_by_futex_and_a_successor_rings_on() {
    at_every_write("die-ringing-by-futex", LEAST, ours::<Futex>, ring::<Futex>);
}

#[test]
fn at_whichever_write_one_who_rings_dies_its_rings_are_heard_by_eventfd_and_a_successor_rings_on() {
    at_every_write("die-ringing-by-eventfd", LEAST, ours::<Eventfd>, ring::<Eventfd>);
}
