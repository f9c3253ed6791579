// SPDX-License-Identifier: MIT OR Apache-2.0
//! Races of notifiers with waiters that sleep on the futex.

use super::any_waiter::any_waiter;
use super::platform::{Bell, Futex, Impatient, explore, explore_bounded};
use crate::wake::{Waiter, WaiterSlot, wait_until};
use loom::sync::Arc;
use loom::thread;

any_waiter!(WaiterSlot::FUTEX, |bell| Futex(&[bell]));

#[test]
fn ring_and_wait() {
    explore(|| {
        let bell = Arc::new(Bell::new());
        let notifier = Arc::clone(&bell);
        let notifier = thread::spawn(move || notifier.ring());
        wait(&bell, 1);
        notifier.join().unwrap();
    });
}

#[test]
fn publish_and_publish_and_wait() {
    explore_bounded(|| {
        let bell = Arc::new(Bell::new());
        let notifiers = [(); 2].map(|()| {
            let bell = Arc::clone(&bell);
            thread::spawn(move || bell.publish())
        });
        wait(&bell, 2);
        notifiers.map(|notifier| notifier.join().unwrap());
    });
}

#[test]
fn ring_and_wait_and_wait() {
    explore_bounded(|| {
        let bell = Arc::new(Bell::new());
        let waiters = [(); 2].map(|()| {
            let bell = Arc::clone(&bell);
            thread::spawn(move || wait(&bell, 1))
        });
        bell.ring();
        waiters.map(|waiter| waiter.join().unwrap());
    });
}

#[test]
fn publish_and_wait_and_wait() {
    explore_bounded(|| {
        let bell = Arc::new(Bell::new());
        let waiters = [(); 2].map(|()| {
            let bell = Arc::clone(&bell);
            thread::spawn(move || wait(&bell, 1))
        });
        bell.publish();
        waiters.map(|waiter| waiter.join().unwrap());
    });
}

/// A peer died after it took the bits and before it woke anybody.
/// Whoever hears of the death wakes everybody.
#[test]
fn death_after_taking_the_bits_and_repair_and_wait() {
    explore(|| {
        let bell = Arc::new(Bell::new());
        let (killed, survivor) = (Arc::clone(&bell), Arc::clone(&bell));
        let notifiers = thread::spawn(move || {
            killed.published.fetch_add(1, loom::sync::atomic::Ordering::Relaxed);
            let _never_woken = killed.words.announce();
            survivor.wake(survivor.words.wake_everybody());
        });
        wait(&bell, 1);
        notifiers.join().unwrap();
    });
}
