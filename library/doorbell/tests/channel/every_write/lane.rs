// SPDX-License-Identifier: MIT OR Apache-2.0
//! A conversation over two lanes: the child asks, we answer.

use super::{LONG, ROUNDS, SHORT, at_every_write, at_every_write_on, padded, parts};
use crate::other::{FOREVER, Other};
use doorbell::Deadline;
use doorbell::channel::{Receiver, RecvError, SendError, Sender};
use doorbell::peer::Untrusted;
use doorbell::rendezvous::Connection;
use doorbell::wait::{Eventfd, Futex, Wait};

pub(super) fn in_place(connection: &Connection, number: u64) {
    converse::<Futex>(connection, number, |sender, bytes| {
        let mut slot = sender.reserve(bytes.len()).unwrap();
        slot.write(0, bytes);
        slot.commit().unwrap();
    });
}

pub(super) fn copying(connection: &Connection, number: u64) {
    converse::<Eventfd>(connection, number, |sender, bytes| sender.send(bytes).unwrap());
}

pub(super) fn batching(connection: &Connection, number: u64) {
    converse::<Futex>(connection, number, |sender, bytes| {
        let mut batch = sender.batch();
        batch.push_deadline(bytes, Some(Deadline::after(FOREVER))).unwrap();
    });
}

pub(super) fn dropping(connection: &Connection, number: u64) {
    converse::<Futex>(connection, number, |sender, bytes| while !sender.send_or_drop(bytes).unwrap() {});
}

/// With messages so long that a ring of 256 bytes is wrapped, with a skip at its end.
pub(super) fn wrapping(connection: &Connection, number: u64) {
    converse_in::<Futex>(connection, number, LONG, |sender, bytes| sender.send(bytes).unwrap());
}

fn converse<W: Wait + Default>(
    connection: &Connection,
    number: u64,
    ask: impl Fn(&mut Sender<Untrusted, W>, &[u8]),
) {
    converse_in(connection, number, SHORT, ask);
}

fn converse_in<W: Wait + Default>(
    connection: &Connection,
    number: u64,
    length: usize,
    ask: impl Fn(&mut Sender<Untrusted, W>, &[u8]),
) {
    let mut sender: Sender<_, W> = Sender::attach_waiting_by(connection, 0).unwrap();
    let mut receiver: Receiver<_, W> = Receiver::attach_waiting_by(connection, 1).unwrap();
    for round in 0..ROUNDS {
        ask(&mut sender, &padded(number, round, length));
        // Answers to an incarnation that died come first.
        while parts(&receiver.recv().unwrap().to_vec()) != (number, round) {}
    }
}

/// Our ends, which stay for the successor: whoever comes to an end that was left is told so.
type Ends<W> = Option<(Receiver<Untrusted, W>, Sender<Untrusted, W>)>;

/// Answers every message until the child goes. Returns how many came from it.
fn serve<W: Wait + Default>(
    ends: &mut Ends<W>,
    connection: &Connection,
    number: u64,
    child: &mut Other,
) -> u64 {
    let attach = || {
        (
            Receiver::attach_waiting_by(connection, 0).unwrap(),
            Sender::attach_waiting_by(connection, 1).unwrap(),
        )
    };
    let (receiver, sender) = ends.get_or_insert_with(attach);
    let mut expected = 0;
    let mut ended = false;
    loop {
        let bytes = match receiver.recv_timeout(FOREVER) {
            Ok(message) => message.expect("hung").to_vec(),
            // It ended before we looked and found nothing more.
            Err(RecvError::PeerGone(peer)) if ended => {
                assert_eq!(peer, connection.peer().id(), "told of the death of somebody else");
                return expected;
            }
            Err(RecvError::Closed) if ended => {
                assert_eq!(expected, ROUNDS, "told of a departure of one that had not done what it came for");
                return expected;
            }
            // It died or left in order, or an earlier one is still reported until its successor attaches.
            Err(RecvError::PeerGone(_) | RecvError::Closed) => {
                ended = child.0.try_wait().unwrap().is_some();
                std::thread::yield_now();
                continue;
            }
            Err(error) => panic!("write {number}: {error}"),
        };
        let (whose, round) = parts(&bytes);
        assert_eq!((whose, round), (number, expected), "whole, in order, and nothing twice");
        expected += 1;
        match sender.send_timeout(&bytes, FOREVER) {
            Ok(()) | Err(SendError::PeerGone(_) | SendError::Closed) => {}
            Err(error) => panic!("write {number}: {error}"),
        }
    }
}

/// A round without a wait still writes two words of payload, one after them and one before.
const LEAST: u64 = 4 * ROUNDS;

#[test]
fn whichever_write_of_a_message_made_in_place_is_the_last_the_whole_ones_are_received_and_a_successor_goes_on()
 {
    at_every_write("die-in-place", LEAST, |_| None, serve::<Futex>);
}

#[test]
fn whichever_write_of_a_copied_message_is_the_last_the_whole_ones_are_received_and_a_successor_goes_on() {
    at_every_write("die-copying", LEAST, |_| None, serve::<Eventfd>);
}

#[test]
fn whichever_write_of_a_message_that_wraps_a_larger_ring_is_the_last_the_whole_ones_are_received() {
    // Nine words of payload in each round.
    at_every_write_on(256, "die-wrapping", 11 * ROUNDS, |_| None, serve::<Futex>);
}

#[test]
fn whichever_write_of_a_batch_is_the_last_the_whole_messages_are_received_and_a_successor_goes_on() {
    at_every_write("die-batching", LEAST, |_| None, serve::<Futex>);
}

#[test]
fn whichever_write_of_one_who_drops_messages_is_the_last_the_whole_ones_are_received_and_a_successor_goes_on()
{
    at_every_write("die-dropping", LEAST, |_| None, serve::<Futex>);
}
