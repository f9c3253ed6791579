// SPDX-License-Identifier: MIT OR Apache-2.0
//! Races of notifiers with waiters that sleep on the futex.

use super::any_waiter;
use super::platform::{Bell, OnFutex, explore, explore_bounded, race};
use crate::wake::Complete;
use loom::sync::atomic::Ordering;

fn wait(bell: &Bell) {
    bell.wait::<OnFutex, Complete>(1);
}

#[test]
fn publish_and_wait() {
    explore(any_waiter::publish_and_wait::<OnFutex, Complete, Complete>);
}

#[test]
fn publish_twice_and_wait_twice() {
    explore_bounded(any_waiter::publish_twice_and_wait_twice::<OnFutex, Complete, Complete>);
}

#[test]
fn timeout_and_publish_and_wait_again() {
    explore(any_waiter::timeout_and_publish_and_wait_again::<OnFutex>);
}

#[test]
fn ring_and_wait() {
    explore(|| race(Bell::new(), [Bell::ring::<Complete>], wait));
}

#[test]
fn publish_and_publish_and_wait() {
    explore_bounded(|| {
        race(Bell::new(), [Bell::publish::<Complete>; 2], |bell| bell.wait::<OnFutex, Complete>(2));
    });
}

#[test]
fn ring_and_wait_and_wait() {
    explore_bounded(|| race(Bell::new(), [wait; 2], Bell::ring::<Complete>));
}

#[test]
fn publish_and_wait_and_wait() {
    explore_bounded(|| race(Bell::new(), [wait; 2], Bell::publish::<Complete>));
}

/// A peer died after it took the bits and before it woke anybody.
/// Whoever hears of the death wakes everybody.
#[test]
fn death_after_taking_the_bits_and_repair_and_wait() {
    fn die_and_repair(bell: &Bell) {
        bell.published.fetch_add(1, Ordering::Relaxed);
        let _never_woken = bell.words.announce();
        bell.wake(bell.words.wake_everybody());
    }
    explore(|| race(Bell::new(), [die_and_repair], wait));
}
