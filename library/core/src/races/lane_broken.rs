// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lane with one step left out or moved: each time the model checker must report it.

use super::lane::{Ends, Lane, converse, full, half_used, used};
use super::platform::{Futex, caught, explore_bounded, without};
use crate::channel::lane::{Complete, Receiver, Sender, Steps};
use crate::wake::{self, Waiter, WaiterSlot, wait_until};
use loom::sync::Arc;
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

fn send_and_receive_two_in<S: Steps + 'static>(lane: (Arc<Lane>, Ends)) {
    converse(
        lane,
        |lane, sender| lane.send_all::<S>(sender, 11..=12),
        |lane, receiver| lane.receive_all::<S>(receiver, 11..=12),
    );
}

/// Four messages went before, so that the ring holds their words.
fn send_twice_and_receive_twice<S: Steps + 'static>() {
    send_and_receive_two_in::<S>(used(4));
}

/// The ring is full, and the third message goes where the first was. Two messages are released at
/// once and nobody is told: the fence of an announcement would order what the release alone must.
fn push_to_a_full_ring_and_release<S: Steps + 'static>() {
    let push = |lane: &Lane, sender: &mut Sender| _ = lane.push::<Complete>(sender, 3, 16);
    converse(full(), push, |lane, receiver| {
        (1..=2).for_each(|value| assert_eq!(lane.take(receiver), Some(value)));
        receiver.release_with::<S>(lane);
    });
}

/// The first begins the ring again, the second comes to the word that leads there. Nobody waits for
/// room: the receiver may have seen nothing.
fn begin_again_and_send_twice<S: Steps + 'static>() {
    send_and_receive_two_in::<S>(half_used());
}

/// The receiver waits for two messages; where it says so is up to `wait`.
fn send_twice_and_wait_for_both<N: wake::Steps + 'static>(
    wait: impl Fn(&Lane, &Receiver) + Sync + Send + 'static,
) -> impl Fn() + Sync + Send + 'static {
    move || {
        let push_and_ring = |lane: &Lane, sender: &mut Sender| {
            for value in 1..=2 {
                assert!(lane.push::<Complete>(sender, value, 8));
                lane.ring::<N>(sender);
            }
        };
        converse(Lane::new(), push_and_ring, |lane, receiver| {
            wait(lane, receiver);
            lane.find_all(receiver, 1..=2);
        });
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
        let send = |lane: &Lane, sender: &mut Sender| lane.send::<Complete>(sender, 3, 16);
        converse(full(), send, |lane, receiver| {
            (1..=2).for_each(|value| assert_eq!(lane.take(receiver), Some(value)));
            receiver.release_unannounced(lane);
            lane.wait(receiver, 1);
        });
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
            wait_until(&mut waiters, &mut Futex(&lane.messages), ready).unwrap();
        }),
    );
}

/// Ringing once for a message that is behind what the receiver waits
/// for, as if it had been told of all of them.
#[test]
fn forgetting_what_was_not_rung_is_caught() {
    caught(LOST_WAKE_UP, || {
        let send = |lane: &Lane, sender: &mut Sender| {
            assert!(lane.push::<Complete>(sender, 1, 8));
            sender.announced();
            assert!(lane.push::<Complete>(sender, 2, 8));
            lane.ring::<wake::Complete>(sender);
        };
        converse(Lane::new(), send, |lane, receiver| lane.receive_all::<Complete>(receiver, 1..=1));
    });
}
