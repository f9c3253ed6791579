// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that dies at its first write to shared memory, and another
//! at its second, and so on through all of them. Each time the survivor
//! gets what was whole, is told, and goes on with a successor.

mod bell;
mod broadcast;
mod gather;
mod lane;

use crate::other::{Other, segment, start};
use doorbell::rendezvous::{Connection, Segment};
use doorbell_core::fault;
use std::os::unix::process::ExitStatusExt;

/// Messages or rings of one life: so many that a ring of 64 bytes is wrapped twice and found full.
const ROUNDS: u64 = 4;
/// The bytes of a message of which a ring of 64 bytes takes two, and
/// of one of which a ring of 256 takes three.
const SHORT: usize = 16;
const LONG: usize = 72;
/// The number of a successor, which no write has.
const NEVER: u64 = u64::MAX;

/// What the child does whose role is `verb`: aborts at its write
/// number `number`, if it comes so far.
pub(crate) fn play(connection: &Connection, verb: &str, number: u64) {
    fault::die_at(number);
    match verb {
        "die-in-place" => lane::in_place(connection, number),
        "die-copying" => lane::copying(connection, number),
        "die-batching" => lane::batching(connection, number),
        "die-dropping" => lane::dropping(connection, number),
        "die-wrapping" => lane::wrapping(connection, number),
        "die-gathered" => gather::send(connection, number),
        "die-subscribed" => broadcast::subscribe(connection),
        "die-publishing" => broadcast::publish(connection, number),
        "die-ringing-by-futex" => bell::answer::<doorbell::wait::Futex>(connection),
        "die-ringing-by-eventfd" => bell::answer::<doorbell::wait::Eventfd>(connection),
        verb => panic!("no role {verb}"),
    }
}

/// Deals with a child that dies at write 0, with one that dies at write 1, and so on, each on a
/// segment of its own, of which `keep` takes what outlives the child, and then with its successor
/// on the same segment. `deal` meets one child, whose number it is told, and returns how many
/// rounds came of it; it must be all of a child that survives.
fn at_every_write<K>(
    role: &str,
    least: u64,
    keep: impl Fn(&Segment) -> K,
    deal: impl FnMut(&mut K, &Connection, u64, &mut Other) -> u64,
) {
    at_every_write_on(64, role, least, keep, deal);
}

/// As `at_every_write`, with rings of `capacity` bytes.
fn at_every_write_on<K>(
    capacity: u64,
    role: &str,
    least: u64,
    keep: impl Fn(&Segment) -> K,
    mut deal: impl FnMut(&mut K, &Connection, u64, &mut Other) -> u64,
) {
    let mut number = 0;
    // How many writes a life has depends on how often it had to wait:
    // one survivor is not the last number.
    let mut survivors_in_a_row = 0;
    while survivors_in_a_row < 5 {
        let segment = segment(2, 2, capacity);
        let mut kept = keep(&segment);
        let mut live = |number| {
            let (connection, mut child) = start(&format!("{role} {number}"), &segment);
            let rounds = deal(&mut kept, &connection, number, &mut child);
            drop(connection);
            let status = child.wait();
            assert!(
                status.success() || status.signal() == Some(libc::SIGABRT),
                "{role} {number} ended otherwise than by its fault: {status}"
            );
            assert!(rounds <= ROUNDS, "{rounds} rounds of {role} {number}");
            assert!(
                !status.success() || rounds == ROUNDS,
                "{role} {number} lived, and {rounds} rounds came of it"
            );
            status.success()
        };
        survivors_in_a_row = if live(number) { survivors_in_a_row + 1 } else { 0 };
        assert!(live(NEVER), "the successor of one that died at write {number} failed");
        number += 1;
    }
    assert!(number > least, "{role}: only {number} writes: the points are not where they should be");
}

/// A message that says whose it is and which.
fn words(incarnation: u64, round: u64) -> Vec<u8> {
    padded(incarnation, round, SHORT)
}

/// The same in `length` bytes, of which all say which it is.
fn padded(incarnation: u64, round: u64, length: usize) -> Vec<u8> {
    let mut bytes = incarnation.to_ne_bytes().to_vec();
    bytes.extend(round.to_ne_bytes());
    bytes.resize(length, round as u8);
    bytes
}

fn parts(bytes: &[u8]) -> (u64, u64) {
    assert!([SHORT, LONG].contains(&bytes.len()), "a message of another length came out");
    let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    let (incarnation, round) = (word(0), word(8));
    assert_eq!(bytes, padded(incarnation, round, bytes.len()), "not all of it came out");
    (incarnation, round)
}
