// SPDX-License-Identifier: MIT OR Apache-2.0
//! A notifier that leaves its fence to the waiters, and takes it back.
//!
//! The barrier of the kernel is a lock here (`platform`): the model
//! checker has none that one thread runs in another.

use super::platform::{Bell, OnFutex, caught, explore_bounded, without};
use crate::wake::{Complete, Steps};

const LOST_WAKE_UP: &str = "deadlock";

/// A notifier that `notify` is, and a waiter for `messages`.
fn race<S: Steps>(messages: u32, notify: fn(&Bell)) -> impl Fn() + Sync + Send + 'static {
    move || super::platform::race(Bell::new(), [notify], |bell| bell.wait::<OnFutex, S>(messages))
}

fn begin_and_publish(bell: &Bell) {
    bell.words.begin_unfenced();
    bell.publish_unfenced();
}

fn publish_and_begin_and_publish(bell: &Bell) {
    bell.publish::<Complete>();
    begin_and_publish(bell);
}

fn begin_and_publish_and_end_and_publish(bell: &Bell) {
    begin_and_publish(bell);
    bell.words.end_unfenced();
    bell.publish::<Complete>();
}

#[test]
fn begin_unfenced_and_publish_and_wait() {
    explore_bounded(race::<Complete>(1, begin_and_publish));
}

#[test]
fn publish_and_begin_unfenced_and_publish_and_wait_for_both() {
    explore_bounded(race::<Complete>(2, publish_and_begin_and_publish));
}

#[test]
fn publish_unfenced_and_end_and_publish_and_wait_for_one_and_for_both() {
    explore_bounded(race::<Complete>(1, begin_and_publish_and_end_and_publish));
    explore_bounded(race::<Complete>(2, begin_and_publish_and_end_and_publish));
}

without! {
    Steps:
    NoBarrier: BARRIER;
    NoFenceInBegin: FENCE_IN_BEGIN;
}

#[test]
fn waiting_without_the_barrier_that_an_unfenced_notifier_needs_is_caught() {
    caught(LOST_WAKE_UP, race::<NoBarrier>(1, begin_and_publish));
}

#[test]
fn leaving_out_the_fence_before_all_waiters_can_know_is_caught() {
    caught(
        LOST_WAKE_UP,
        race::<Complete>(1, |bell| {
            bell.words.begin_unfenced_with::<NoFenceInBegin>();
            bell.publish_unfenced();
        }),
    );
}
