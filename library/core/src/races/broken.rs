// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol with one step left out or moved: each time the model
//! checker must report the lost wake-up.

use super::any_waiter::{publish_and_wait, publish_twice_and_wait_twice};
use super::platform::{Bell, EVENTFD_1, Eventfd, OnFutex, OnToken, caught, explore_bounded, race, without};
use crate::wake::broken::{announce_with_load_and_store, clear_shared_bit};
use crate::wake::{Complete, Sleep, Slept, Steps, Waiter, WaiterSlot, wait_until};
use loom::sync::atomic::Ordering;
use loom::sync::{Condvar, Mutex};

/// Explores `race` and expects loom to find everybody blocked.
fn lost_wake_up(race: impl Fn() + Sync + Send + 'static) {
    caught("deadlock", race);
}

without! {
    Steps:
    NoFenceInAnnounce: FENCE_IN_ANNOUNCE;
    NoFenceInListen: FENCE_IN_LISTEN;
    NoNewEpoch: NEW_EPOCH;
    NoArm: ARM;
    NoCheckAfterArm: CHECK_AFTER_ARM;
    ArmBeforeConsume: CONSUME_BEFORE_ARM;
    ArmBeforeTicket: TICKET_BEFORE_ARM;
    EpochBeforeTaking: TAKE_BEFORE_EPOCH;
}

/// The control: with every step in its place the same races end well.
#[test]
fn complete_protocol_passes_the_races_that_catch_the_mistakes() {
    explore_bounded(publish_and_wait::<OnFutex, Complete, Complete>);
    explore_bounded(publish_twice_and_wait_twice::<OnFutex, Complete, Complete>);
    explore_bounded(publish_twice_and_wait_twice::<OnToken, Complete, Complete>);
}

#[test]
fn notifier_without_fence_is_caught() {
    lost_wake_up(publish_and_wait::<OnFutex, NoFenceInAnnounce, Complete>);
}

#[test]
fn notifier_without_fence_after_counting_is_caught() {
    lost_wake_up(|| race(Bell::new(), [Bell::ring::<NoFenceInAnnounce>], stay));
}

#[test]
fn waiter_without_fence_is_caught() {
    lost_wake_up(publish_and_wait::<OnFutex, Complete, NoFenceInListen>);
}

#[test]
fn token_waiter_without_fence_is_caught() {
    lost_wake_up(publish_twice_and_wait_twice::<OnToken, Complete, NoFenceInListen>);
}

#[test]
fn waiter_that_does_not_arm_is_caught() {
    lost_wake_up(publish_and_wait::<OnFutex, Complete, NoArm>);
}

#[test]
fn sleep_without_second_look_is_caught() {
    lost_wake_up(publish_and_wait::<OnFutex, Complete, NoCheckAfterArm>);
}

#[test]
fn token_sleep_without_second_look_is_caught() {
    lost_wake_up(publish_twice_and_wait_twice::<OnToken, Complete, NoCheckAfterArm>);
}

#[test]
fn wake_without_new_epoch_is_caught() {
    lost_wake_up(publish_and_wait::<OnFutex, NoNewEpoch, Complete>);
}

#[test]
fn arming_before_reading_the_ticket_is_caught() {
    lost_wake_up(publish_twice_and_wait_twice::<OnFutex, Complete, ArmBeforeTicket>);
}

#[test]
fn new_epoch_before_taking_the_bits_is_caught() {
    lost_wake_up(publish_twice_and_wait_twice::<OnFutex, EpochBeforeTaking, Complete>);
}

#[test]
fn arming_before_consuming_the_token_is_caught() {
    lost_wake_up(publish_twice_and_wait_twice::<OnToken, Complete, ArmBeforeConsume>);
}

/// A futex waiter that found its message after arming clears the bit that others sleep behind.
#[test]
fn clearing_the_shared_bit_is_caught() {
    fn leave(bell: &Bell) {
        bell.wait::<OnFutex, Complete>(0);
        clear_shared_bit(&bell.words);
    }
    lost_wake_up(|| race(Bell::new(), [leave, stay], Bell::publish::<Complete>));
}

fn stay(bell: &Bell) {
    bell.wait::<OnFutex, Complete>(1);
}

/// Wakes the first sleeper in its queue alone.
struct OneAtATime {
    bell: Bell,
    queue: (Mutex<u32>, Condvar),
}

impl Sleep for &OneAtATime {
    type Error = ();
    fn consume(&mut self, _: usize) -> Result<(), ()> {
        Ok(())
    }
    fn barrier(&mut self, _: usize) -> Result<(), ()> {
        unreachable!("every notifier here has its fence")
    }
    fn sleep(&mut self, waiters: &[Waiter<'_>]) -> Result<Slept, ()> {
        let (lock, changed) = &self.queue;
        let mut wakes = lock.lock().unwrap();
        while *wakes == 0 && self.bell.words.epoch().load(Ordering::Relaxed) == waiters[0].ticket() {
            wakes = changed.wait(wakes).unwrap();
        }
        *wakes = wakes.saturating_sub(1);
        Ok(Slept::Woken)
    }
}

/// Two notifiers' worth of waking, but only the first sleeper in the queue is woken.
#[test]
fn waking_one_of_two_sleepers_is_caught() {
    fn wait(mut at: &OneAtATime) {
        let mut waiters = [Waiter::new(&at.bell.words, WaiterSlot::FUTEX)];
        let bell = &at.bell;
        wait_until(&mut waiters, &mut at, || bell.has(1)).unwrap();
    }
    lost_wake_up(|| {
        let at = OneAtATime { bell: Bell::new(), queue: (Mutex::new(0), Condvar::new()) };
        race(at, [wait; 2], |at| {
            at.bell.published.fetch_add(1, Ordering::Relaxed);
            if at.bell.words.announce().futex() {
                *at.queue.0.lock().unwrap() += 1;
                at.queue.1.notify_one();
            }
        });
    });
}

/// The bits taken with a load and a store: a waiter that arms in between is forgotten.
#[test]
fn taking_the_bits_without_a_swap_is_caught() {
    fn publish_twice(bell: &Bell) {
        for _ in 0..2 {
            bell.published.fetch_add(1, Ordering::Relaxed);
            bell.wake(announce_with_load_and_store(&bell.words));
        }
    }
    lost_wake_up(|| {
        race(Bell::new(), [publish_twice, |bell| bell.wait::<OnToken, Complete>(1)], |bell| {
            let mut waiters = [Waiter::new(&bell.words, EVENTFD_1)];
            for wanted in 1..=2 {
                wait_until(&mut waiters, &mut Eventfd(bell, 1), || bell.has(wanted)).unwrap();
            }
        });
    });
}
