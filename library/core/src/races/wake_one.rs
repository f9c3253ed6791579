// SPDX-License-Identifier: MIT OR Apache-2.0
//! Races of notifiers with waiters of whom one is woken.

use super::platform::{caught, explore, explore_within, race, without};
use crate::wake_one::{Complete, SleepOne, Steps, WakeOne};
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};
use std::vec::Vec;

/// Of three threads; one more takes minutes. (It was run once, and found nothing.)
const THREE_THREADS: usize = 3;

/// Things to be taken, and the kernel's queue of those who sleep.
struct Queue {
    words: WakeOne,
    things: AtomicU32,
    /// Who sleeps, by number, and the next number.
    sleeping: Mutex<(Vec<u32>, u32)>,
    changed: Condvar,
}

/// What the kernel does for a sleeper.
struct Futex<'a>(&'a Queue);

impl SleepOne for Futex<'_> {
    type Error = ();

    fn sleep(&mut self, word: &AtomicU32, ticket: u32) -> Result<bool, ()> {
        let mut sleeping = self.0.sleeping.lock().unwrap();
        if word.load(Ordering::Relaxed) == ticket {
            let number = sleeping.1;
            sleeping.1 += 1;
            sleeping.0.push(number);
            while sleeping.0.contains(&number) {
                sleeping = self.0.changed.wait(sleeping).unwrap();
            }
        }
        Ok(true)
    }
}

impl Queue {
    fn new() -> Self {
        Self {
            words: WakeOne::new(),
            things: AtomicU32::new(0),
            sleeping: Mutex::new((Vec::new(), 0)),
            changed: Condvar::new(),
        }
    }

    fn put<S: Steps>(&self) {
        // Relaxed: the protocol must order it.
        self.things.fetch_add(1, Ordering::Relaxed);
        if self.words.announce_with::<S>() {
            let mut sleeping = self.sleeping.lock().unwrap();
            if !sleeping.0.is_empty() {
                sleeping.0.remove(0);
                self.changed.notify_all();
            }
        }
    }

    fn take<S: Steps>(&self) {
        let one = || {
            self.things
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |things| things.checked_sub(1))
                .ok()
        };
        self.words.take_with::<S, _, _>(&mut Futex(self), one).unwrap().unwrap();
    }
}

fn put_and_take<N: Steps, W: Steps>() {
    race(Queue::new(), [Queue::put::<N>], Queue::take::<W>);
}

#[test]
fn one_put_and_one_take() {
    explore(put_and_take::<Complete, Complete>);
}

#[test]
fn two_puts_and_one_take_each_of_two() {
    explore_within(THREE_THREADS, || {
        race(Queue::new(), [Queue::take::<Complete>; 2], |queue| {
            queue.put::<Complete>();
            queue.put::<Complete>();
        });
    });
}

#[test]
fn a_put_each_of_two_and_two_takes() {
    explore_within(THREE_THREADS, || {
        race(Queue::new(), [Queue::put::<Complete>; 2], |queue| {
            queue.take::<Complete>();
            queue.take::<Complete>();
        });
    });
}

without! {
    Steps:
    NoFenceInAnnounce: FENCE_IN_ANNOUNCE;
    NoFenceInTake: FENCE_IN_TAKE;
    NoNewEpoch: NEW_EPOCH;
    TicketAfterLook: TICKET_BEFORE_LOOK;
}

#[test]
fn without_the_fence_of_the_notifier_a_wake_up_is_lost() {
    caught("deadlock", put_and_take::<NoFenceInAnnounce, Complete>);
}

#[test]
fn without_the_fence_of_the_waiter_a_wake_up_is_lost() {
    caught("deadlock", put_and_take::<Complete, NoFenceInTake>);
}

#[test]
fn without_a_new_epoch_a_waiter_sleeps_through_its_wake() {
    caught("deadlock", put_and_take::<NoNewEpoch, Complete>);
}

#[test]
fn with_a_ticket_that_is_read_behind_the_look_a_waiter_sleeps_on_the_new_epoch() {
    caught("deadlock", put_and_take::<Complete, TicketAfterLook>);
}
