// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol with one step left out or moved: each time the model
//! checker must report the lost wake-up.

use super::platform::{Bell, EVENTFD_0, EVENTFD_1, Eventfd, Futex, caught, explore_bounded, without};
use crate::wake::broken::{
    announce, announce_with_load_and_store, clear_shared_bit, count_and_announce, wait_until,
};
use crate::wake::{Complete, Steps, Waiter, WaiterSlot};
use loom::sync::Arc;
use loom::sync::atomic::Ordering;
use loom::thread;

/// Explores `race` and expects loom to find everybody blocked.
fn lost_wake_up(race: impl Fn() + Sync + Send + 'static) {
    caught("deadlock", race);
}

fn publish<S: Steps>(bell: &Bell) {
    bell.published.fetch_add(1, Ordering::Relaxed);
    bell.wake(announce::<S>(&bell.words));
}

fn futex_wait<S: Steps>(bell: &Bell, wanted: u32) {
    let mut waiters = [Waiter::new(&bell.words, WaiterSlot::FUTEX)];
    wait_until::<S, _>(&mut waiters, &mut Futex(&[bell]), || bell.has(wanted)).unwrap();
}

fn token_wait<S: Steps>(bell: &Bell, wanted: u32) {
    let mut waiters = [Waiter::new(&bell.words, EVENTFD_0)];
    wait_until::<S, _>(&mut waiters, &mut Eventfd(bell, 0), || bell.has(wanted)).unwrap();
}

/// One notifier, one futex waiter.
fn publish_and_futex_wait<N: Steps + 'static, W: Steps + 'static>() {
    let bell = Arc::new(Bell::new());
    let notifier = Arc::clone(&bell);
    let notifier = thread::spawn(move || publish::<N>(&notifier));
    futex_wait::<W>(&bell, 1);
    notifier.join().unwrap();
}

/// One notifier, one futex waiter, two messages taken one after the other.
fn publish_twice_and_futex_wait_twice<N: Steps + 'static, W: Steps + 'static>() {
    let bell = Arc::new(Bell::new());
    let notifier = Arc::clone(&bell);
    let notifier = thread::spawn(move || {
        publish::<N>(&notifier);
        publish::<N>(&notifier);
    });
    futex_wait::<W>(&bell, 1);
    futex_wait::<W>(&bell, 2);
    notifier.join().unwrap();
}

/// One notifier, one token waiter, two messages taken one after the other.
fn publish_twice_and_token_wait_twice<N: Steps + 'static, W: Steps + 'static>() {
    let bell = Arc::new(Bell::new());
    let notifier = Arc::clone(&bell);
    let notifier = thread::spawn(move || {
        publish::<N>(&notifier);
        publish::<N>(&notifier);
    });
    token_wait::<W>(&bell, 1);
    token_wait::<W>(&bell, 2);
    notifier.join().unwrap();
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
    explore_bounded(publish_and_futex_wait::<Complete, Complete>);
    explore_bounded(publish_twice_and_futex_wait_twice::<Complete, Complete>);
    explore_bounded(publish_twice_and_token_wait_twice::<Complete, Complete>);
}

#[test]
fn notifier_without_fence_is_caught() {
    lost_wake_up(publish_and_futex_wait::<NoFenceInAnnounce, Complete>);
}

#[test]
fn notifier_without_fence_after_counting_is_caught() {
    lost_wake_up(|| {
        let bell = Arc::new(Bell::new());
        let notifier = Arc::clone(&bell);
        let notifier = thread::spawn(move || {
            notifier.wake(count_and_announce::<NoFenceInAnnounce>(&notifier.words, &notifier.published));
        });
        futex_wait::<Complete>(&bell, 1);
        notifier.join().unwrap();
    });
}

#[test]
fn waiter_without_fence_is_caught() {
    lost_wake_up(publish_and_futex_wait::<Complete, NoFenceInListen>);
}

#[test]
fn token_waiter_without_fence_is_caught() {
    lost_wake_up(publish_twice_and_token_wait_twice::<Complete, NoFenceInListen>);
}

#[test]
fn waiter_that_does_not_arm_is_caught() {
    lost_wake_up(publish_and_futex_wait::<Complete, NoArm>);
}

#[test]
fn sleep_without_second_look_is_caught() {
    lost_wake_up(publish_and_futex_wait::<Complete, NoCheckAfterArm>);
}

#[test]
fn token_sleep_without_second_look_is_caught() {
    lost_wake_up(publish_twice_and_token_wait_twice::<Complete, NoCheckAfterArm>);
}

#[test]
fn wake_without_new_epoch_is_caught() {
    lost_wake_up(publish_and_futex_wait::<NoNewEpoch, Complete>);
}

#[test]
fn arming_before_reading_the_ticket_is_caught() {
    lost_wake_up(publish_twice_and_futex_wait_twice::<Complete, ArmBeforeTicket>);
}

#[test]
fn new_epoch_before_taking_the_bits_is_caught() {
    lost_wake_up(publish_twice_and_futex_wait_twice::<EpochBeforeTaking, Complete>);
}

#[test]
fn arming_before_consuming_the_token_is_caught() {
    lost_wake_up(publish_twice_and_token_wait_twice::<Complete, ArmBeforeConsume>);
}

/// A futex waiter that found its message after arming clears the bit that others sleep behind.
#[test]
fn clearing_the_shared_bit_is_caught() {
    lost_wake_up(|| {
        let bell = Arc::new(Bell::new());
        let leaving = Arc::clone(&bell);
        let leaving = thread::spawn(move || {
            futex_wait::<Complete>(&leaving, 0);
            clear_shared_bit(&leaving.words);
        });
        let staying = Arc::clone(&bell);
        let staying = thread::spawn(move || futex_wait::<Complete>(&staying, 1));
        publish::<Complete>(&bell);
        leaving.join().unwrap();
        staying.join().unwrap();
    });
}

/// Two notifiers' worth of waking, but only the first sleeper in the queue is woken.
#[test]
fn waking_one_of_two_sleepers_is_caught() {
    lost_wake_up(|| {
        let bell = Arc::new(Bell::new());
        let queue = Arc::new((loom::sync::Mutex::new(0_u32), loom::sync::Condvar::new()));
        let waiters = [(); 2].map(|()| {
            let (bell, queue) = (Arc::clone(&bell), Arc::clone(&queue));
            thread::spawn(move || {
                struct OneAtATime<'a>(&'a Bell, &'a (loom::sync::Mutex<u32>, loom::sync::Condvar));
                impl crate::wake::Sleep for OneAtATime<'_> {
                    type Error = ();
                    fn consume(&mut self, _: usize) -> Result<(), ()> {
                        Ok(())
                    }
                    fn barrier(&mut self, _: usize) -> Result<(), ()> {
                        unreachable!("every notifier here has its fence")
                    }
                    fn sleep(&mut self, waiters: &[Waiter<'_>]) -> Result<crate::wake::Slept, ()> {
                        let mut wakes = self.1.0.lock().unwrap();
                        while *wakes == 0
                            && self.0.words.epoch().load(Ordering::Relaxed) == waiters[0].ticket()
                        {
                            wakes = self.1.1.wait(wakes).unwrap();
                        }
                        *wakes = wakes.saturating_sub(1);
                        Ok(crate::wake::Slept::Woken)
                    }
                }
                let mut waiters = [Waiter::new(&bell.words, WaiterSlot::FUTEX)];
                let mut sleeper = OneAtATime(&bell, &queue);
                wait_until::<Complete, _>(&mut waiters, &mut sleeper, || bell.has(1)).unwrap();
            })
        });
        bell.published.fetch_add(1, Ordering::Relaxed);
        if announce::<Complete>(&bell.words).futex() {
            *queue.0.lock().unwrap() += 1;
            queue.1.notify_one();
        }
        waiters.map(|waiter| waiter.join().unwrap());
    });
}

/// The bits taken with a load and a store: a waiter that arms in between is forgotten.
#[test]
fn taking_the_bits_without_a_swap_is_caught() {
    lost_wake_up(|| {
        let bell = Arc::new(Bell::new());
        let notifier = Arc::clone(&bell);
        let notifier = thread::spawn(move || {
            for _ in 0..2 {
                notifier.published.fetch_add(1, Ordering::Relaxed);
                notifier.wake(announce_with_load_and_store(&notifier.words));
            }
        });
        let sleeper = Arc::clone(&bell);
        let sleeper = thread::spawn(move || token_wait::<Complete>(&sleeper, 1));
        let mut waiters = [Waiter::new(&bell.words, EVENTFD_1)];
        for wanted in 1..=2 {
            wait_until::<Complete, _>(&mut waiters, &mut Eventfd(&bell, 1), || bell.has(wanted)).unwrap();
        }
        sleeper.join().unwrap();
        notifier.join().unwrap();
    });
}
