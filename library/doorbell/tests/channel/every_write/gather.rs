// SPDX-License-Identifier: MIT OR Apache-2.0
//! One of two senders to a gather dies; the other costs it nothing.

use super::{ROUNDS, at_every_write, parts, words};
use crate::meet::meet;
use crate::other::{FOREVER, segment};
use doorbell::channel::{AttachError, Gather, GatherError, RecvError, Sender};
use doorbell::rendezvous::Connection;
use doorbell::wait::Futex;
use std::thread;
use std::time::{Duration, Instant};

pub(super) fn send(connection: &Connection, number: u64) {
    // Of a predecessor that died after its last message nobody waits
    // to be told, and its lane may be its own for a moment.
    let begun = Instant::now();
    let mut sender: Sender<_, Futex> = loop {
        match Sender::attach_waiting_by(connection, 0) {
            Err(AttachError::Taken { .. }) if begun.elapsed() < FOREVER => {
                thread::sleep(Duration::from_millis(1));
            }
            attached => break attached.unwrap(),
        }
    };
    for round in 0..ROUNDS {
        sender.send(&words(number, round)).unwrap();
    }
}

#[test]
fn at_whichever_write_a_sender_dies_the_gather_gets_its_whole_messages_and_all_of_the_other_sender() {
    let (other, joined) = meet(&segment(1, 1, 64));
    let mut honest: Sender<_, Futex> = Sender::attach_waiting_by(&joined, 0).unwrap();
    let mut sent = 0_u64;
    // What a message of the child takes at the least: two words, one after, one before.
    at_every_write(
        "die-gathered",
        4 * ROUNDS,
        |_| None,
        |kept: &mut Option<Gather<_, Futex>>, connection, number, child| {
            let (dying, living) = (0, 1);
            let gather = kept.get_or_insert_with(|| {
                let mut gather = Gather::default();
                assert_eq!((gather.add(connection, 0), gather.add(&other, 0)), (Ok(dying), Ok(living)));
                gather
            });
            let (mut heard, mut told, mut received) = (0, false, sent);
            // Until it has ended, and then until one more message of
            // the other has come: what it left lies before that.
            let mut ended = None;
            loop {
                let last = ended.is_some();
                ended = child.0.try_wait().unwrap();
                honest.try_send(&sent.to_ne_bytes()).unwrap();
                sent += 1;
                while received < sent {
                    match gather.recv_timeout(FOREVER) {
                        Ok(message) => {
                            let (lane, message) = message.expect("hung");
                            if lane == living {
                                assert_eq!(message.to_vec(), received.to_ne_bytes());
                                received += 1;
                            } else {
                                assert_eq!((lane, parts(&message.to_vec())), (dying, (number, heard)));
                                heard += 1;
                            }
                        }
                        Err(GatherError { lane, error: RecvError::PeerGone(peer) }) => {
                            // Its predecessor's until it comes, then its own: once.
                            assert_eq!((lane, told), (Some(dying), false));
                            told = peer == connection.peer().id();
                        }
                        Err(error) => panic!("write {number}: {error}"),
                    }
                }
                if last {
                    break;
                }
            }
            // One that died after its last message may have left its lane before, and that is all there is to
            // tell. All others must be told of, however long that takes.
            let died = ended.is_some_and(|status| !status.success());
            loop {
                let patience = if died && !told && heard < ROUNDS { FOREVER } else { Duration::ZERO };
                match gather.recv_timeout(patience) {
                    Ok(Some((lane, message))) => {
                        assert_eq!((lane, parts(&message.to_vec())), (dying, (number, heard)));
                        heard += 1;
                    }
                    Ok(None) => break,
                    Err(GatherError { lane, error: RecvError::PeerGone(peer) }) => {
                        assert_eq!((lane, told), (Some(dying), false));
                        told = peer == connection.peer().id();
                    }
                    Err(error) => panic!("write {number}: {error}"),
                }
            }
            assert!(told || !died || heard == ROUNDS, "nobody told that the sender died at write {number}");
            assert!(died || !told, "a death was told of one that left");
            heard
        },
    );
}
