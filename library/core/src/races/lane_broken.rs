// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lane with one step left out or moved: each time the model checker must report it.

use super::lane::{Lane, half_used, sending};
use super::platform::{Futex, caught, explore_bounded, without};
use crate::channel::lane::{Complete, Steps};
use crate::wake::{self, Waiter, WaiterSlot, wait_until};
use loom::sync::atomic::Ordering;

const DATA_RACE: &str = "Causality violation";
const LOST_WAKE_UP: &str = "deadlock";
const WRONG_MESSAGE: &str = "assertion `left == right` failed";

without! {
    Steps:
    NoReleaseInPublish: RELEASE_IN_PUBLISH;
    NoAcquireInNext: ACQUIRE_IN_NEXT;
    ClearAfterPublish: CLEAR_BEFORE_PUBLISH;
    NoReleaseInRelease: RELEASE_IN_RELEASE;
    NoHurdle: KEEP_HURDLE;
}

/// Four messages went before, so that the ring holds their words.
fn send_twice_and_receive_twice<S: Steps + 'static>() {
    let (lane, mut ends) = Lane::new();
    lane.used(&mut ends, 4);
    let sender = sending(&lane, ends.sender, |lane, sender| {
        lane.send::<S>(sender, 11, 8);
        lane.send::<S>(sender, 12, 8);
    });
    assert_eq!(lane.receive::<S>(&mut ends.receiver), 11);
    assert_eq!(lane.receive::<S>(&mut ends.receiver), 12);
    sender.join().unwrap();
}

/// The ring is full, and the third message goes where the first was. Two messages are released at
/// once and nobody is told: the fence of an announcement would order what the release alone must.
fn push_to_a_full_ring_and_release<S: Steps + 'static>() {
    let (lane, mut ends) = Lane::new();
    assert!(lane.push::<Complete>(&mut ends.sender, 1, 16));
    assert!(lane.push::<Complete>(&mut ends.sender, 2, 16));
    let sender = sending(&lane, ends.sender, |lane, sender| {
        lane.push::<Complete>(sender, 3, 16);
    });
    for value in 1..=2 {
        assert_eq!(lane.take(&mut ends.receiver), Some(value));
    }
    ends.receiver.release_with::<S>(&*lane);
    sender.join().unwrap();
}

/// The first begins the ring again, the second comes to the word that leads there. Nobody waits for
/// room: the receiver may have seen nothing.
fn begin_again_and_send_twice<S: Steps + 'static>() {
    let (lane, mut ends) = half_used();
    let sender = sending(&lane, ends.sender, |lane, sender| {
        lane.send::<S>(sender, 11, 8);
        lane.send::<S>(sender, 12, 8);
    });
    assert_eq!(lane.receive::<S>(&mut ends.receiver), 11);
    assert_eq!(lane.receive::<S>(&mut ends.receiver), 12);
    sender.join().unwrap();
}

/// The receiver waits for two messages; where it says so is up to `wait`.
fn send_twice_and_wait_for_both<N: wake::Steps + 'static>(
    wait: impl Fn(&Lane, &crate::channel::lane::Receiver) + Sync + Send + 'static,
) -> impl Fn() + Sync + Send + 'static {
    move || {
        let (lane, mut ends) = Lane::new();
        let sender = sending(&lane, ends.sender, |lane, sender| {
            for value in 1..=2 {
                assert!(lane.push::<Complete>(sender, value, 8));
                lane.ring::<N>(sender);
            }
        });
        wait(&lane, &ends.receiver);
        assert_eq!(lane.try_receive::<Complete>(&mut ends.receiver), Some(1));
        assert_eq!(lane.try_receive::<Complete>(&mut ends.receiver), Some(2));
        sender.join().unwrap();
    }
}

/// The control: with every step in its place the same races end well.
#[test]
fn complete_lane_passes_the_races_that_catch_the_mistakes() {
    explore_bounded(send_twice_and_receive_twice::<Complete>);
    explore_bounded(push_to_a_full_ring_and_release::<Complete>);
    explore_bounded(begin_again_and_send_twice::<Complete>);
    explore_bounded(send_twice_and_wait_for_both::<wake::Complete>(|lane, receiver| lane.wait(receiver, 32)));
}

#[test]
fn commit_without_release_is_caught() {
    caught(DATA_RACE, send_twice_and_receive_twice::<NoReleaseInPublish>);
}

#[test]
fn look_without_acquire_is_caught() {
    caught(DATA_RACE, send_twice_and_receive_twice::<NoAcquireInNext>);
}

#[test]
fn clearing_the_next_word_after_the_commit_is_caught() {
    caught(WRONG_MESSAGE, send_twice_and_receive_twice::<ClearAfterPublish>);
}

#[test]
fn releasing_room_without_release_is_caught() {
    caught(DATA_RACE, push_to_a_full_ring_and_release::<NoReleaseInRelease>);
}

#[test]
fn writing_over_the_skip_that_began_the_ring_again_is_caught() {
    caught(LOST_WAKE_UP, begin_again_and_send_twice::<NoHurdle>);
}

without! {
    wake::Steps:
    NoFenceInAnnounce: FENCE_IN_ANNOUNCE;
}

#[test]
fn ringing_without_fence_is_caught() {
    caught(
        LOST_WAKE_UP,
        send_twice_and_wait_for_both::<NoFenceInAnnounce>(|lane, receiver| lane.wait(receiver, 32)),
    );
}

/// A receiver that never tells of room as long as it finds messages,
/// and thinks that it has when it found none.
#[test]
fn releasing_all_room_without_an_announcement_is_caught() {
    caught(LOST_WAKE_UP, || {
        let (lane, mut ends) = Lane::new();
        assert!(lane.push::<Complete>(&mut ends.sender, 1, 16));
        assert!(lane.push::<Complete>(&mut ends.sender, 2, 16));
        let sender = sending(&lane, ends.sender, |lane, sender| lane.send::<Complete>(sender, 3, 16));
        for value in 1..=2 {
            assert_eq!(lane.take(&mut ends.receiver), Some(value));
        }
        ends.receiver.release_unannounced(&*lane);
        lane.wait(&ends.receiver, 1);
        sender.join().unwrap();
    });
}

/// The wanted index written when the waiter is armed already: a
/// sender that finds the bit reads the old index.
#[test]
fn saying_what_is_wanted_after_arming_is_caught() {
    caught(
        LOST_WAKE_UP,
        send_twice_and_wait_for_both::<wake::Complete>(|lane, receiver| {
            let mut waiters = [Waiter::new(&lane.messages.words, WaiterSlot::FUTEX)];
            let ready = || {
                let ready = receiver.has_bytes(32, lane);
                lane.message_wanted.store(receiver.wanted(32), Ordering::Relaxed);
                ready
            };
            wait_until(&mut waiters, &mut Futex(&[&lane.messages]), ready).unwrap();
        }),
    );
}

/// Ringing once for a message that is behind what the receiver waits
/// for, as if it had been told of all of them.
#[test]
fn forgetting_what_was_not_rung_is_caught() {
    caught(LOST_WAKE_UP, || {
        let (lane, mut ends) = Lane::new();
        let sender = sending(&lane, ends.sender, |lane, sender| {
            assert!(lane.push::<Complete>(sender, 1, 8));
            sender.announced();
            assert!(lane.push::<Complete>(sender, 2, 8));
            lane.ring::<wake::Complete>(sender);
        });
        assert_eq!(lane.receive::<Complete>(&mut ends.receiver), 1);
        sender.join().unwrap();
    });
}
