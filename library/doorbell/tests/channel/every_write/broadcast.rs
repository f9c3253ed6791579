// SPDX-License-Identifier: MIT OR Apache-2.0
//! A subscriber that holds back dies; a publisher dies.

use super::{NEVER, ROUNDS, at_every_write, parts, words};
use crate::other::FOREVER;
use doorbell::Deadline;
use doorbell::channel::RecvError;
use doorbell::channel::broadcast::{Ended, Publisher, Subscriber, WhenSlow};
use doorbell::rendezvous::Connection;
use doorbell::wait::Futex;

/// So small that the publisher has to wait for its subscriber.
const LOG: u64 = 128;

fn forever() -> Option<Deadline> {
    Some(Deadline::after(FOREVER))
}

pub(super) fn subscribe(connection: &Connection) {
    let mut subscriber: Subscriber<_, Futex> =
        Subscriber::join_within(connection, 0, doorbell::rendezvous::MOST_MEMORY).unwrap();
    let mut bytes = Vec::new();
    for round in 0..ROUNDS {
        assert_eq!(subscriber.recv_into(&mut bytes), Ok(0), "one that holds back misses nothing");
        assert_eq!(parts(&bytes), (NEVER, round));
    }
}

pub(super) fn publish(connection: &Connection, number: u64) {
    let mut publisher: Publisher<Futex> = Publisher::waiting_by(LOG).unwrap();
    publisher.admit(connection, 0, WhenSlow::HoldBack).unwrap();
    for round in 0..ROUNDS {
        publisher.publish(&words(number, round)).unwrap();
    }
}

#[test]
fn at_whichever_write_a_subscriber_dies_the_publisher_goes_on_and_a_successor_subscribes() {
    // Each message is asked for, and its place given back.
    at_every_write(
        "die-subscribed",
        ROUNDS,
        |_| (),
        |(), connection, number, child| {
            let mut publisher: Publisher<Futex> = Publisher::waiting_by(LOG).unwrap();
            let mut local = publisher.subscribe_waiting_by::<Futex>(WhenSlow::Gap).unwrap();
            publisher.admit(connection, 0, WhenSlow::HoldBack).unwrap();
            let mut bytes = Vec::new();
            // More than the log holds, and than the child takes: it has left by then, or died.
            for round in 0..5 * ROUNDS {
                publisher.publish_deadline(&words(NEVER, round), forever()).expect("hung");
                assert_eq!(local.try_recv_into(&mut bytes), Ok(Some(0)));
                assert_eq!(parts(&bytes), (NEVER, round));
            }
            let ended = publisher.ended();
            assert!(
                matches!(ended[..], [(1, Ended::Left | Ended::Gone(_))]),
                "write {number}: the subscription ended with {ended:?}"
            );
            // It checks its messages itself, and fails if they are not what they should be.
            if child.0.wait().unwrap().success() { ROUNDS } else { 0 }
        },
    );
}

#[test]
fn at_whichever_write_a_publisher_dies_what_it_had_published_is_received_and_its_death_told() {
    // Two words of payload, a number and a length, and the tail.
    at_every_write(
        "die-publishing",
        5 * ROUNDS,
        |_| (),
        |(), connection, number, _| {
            // It may die before it has sent the log.
            let Ok(mut subscriber) =
                Subscriber::<_, Futex>::join_within(connection, 0, doorbell::rendezvous::MOST_MEMORY)
            else {
                return 0;
            };
            let mut bytes = Vec::new();
            let mut expected = 0;
            loop {
                match subscriber.recv_into_deadline(&mut bytes, forever()) {
                    Ok(lost) => {
                        assert_eq!(lost.expect("hung"), 0);
                        assert_eq!(parts(&bytes), (number, expected));
                        expected += 1;
                    }
                    Err(RecvError::PeerGone(peer)) => {
                        assert_eq!(peer, connection.peer().id());
                        return expected;
                    }
                    Err(RecvError::Closed) => return expected,
                    Err(error) => panic!("write {number}: {error}"),
                }
            }
        },
    );
}
