// SPDX-License-Identifier: MIT OR Apache-2.0
//! Races of notifiers with waiters that sleep on a token of their own.

use super::any_waiter::any_waiter;
use super::platform::{Bell, EVENTFD_0, Eventfd, Impatient, explore, explore_bounded};
use crate::wake::{Waiter, listen, wait_until};
use loom::sync::Arc;
use loom::thread;

any_waiter!(EVENTFD_0, |bell| Eventfd(bell, 0));

#[test]
fn publish_and_publish_and_wait_twice() {
    explore_bounded(|| {
        let bell = Arc::new(Bell::new());
        let notifiers = [(); 2].map(|()| {
            let bell = Arc::clone(&bell);
            thread::spawn(move || bell.publish())
        });
        wait(&bell, 1);
        wait(&bell, 2);
        notifiers.map(|notifier| notifier.join().unwrap());
    });
}

/// A foreign event loop: poll, listen, take what is there, poll again.
#[test]
fn publish_twice_and_listen_after_each_poll() {
    explore_bounded(|| {
        let bell = Arc::new(Bell::new());
        let notifier = Arc::clone(&bell);
        let notifier = thread::spawn(move || {
            notifier.publish();
            notifier.publish();
        });
        let mut waiters = [Waiter::new(&bell.words, EVENTFD_0)];
        let mut sleeper = Eventfd(&bell, 0);
        let mut taken = 0;
        while taken < 2 {
            if !listen(&mut waiters, &mut sleeper, || bell.has(taken + 1)).unwrap() {
                bell.poll(0);
            } else {
                taken = bell.published.load(loom::sync::atomic::Ordering::Relaxed);
            }
        }
        notifier.join().unwrap();
    });
}

/// A foreign event loop that takes one message for each readiness. It consumes the token only when
/// it found nothing left, and writes one itself when `listen` finds a message after all.
#[test]
fn publish_twice_and_take_one_for_each_poll() {
    explore_bounded(|| {
        let bell = Arc::new(Bell::new());
        let notifier = Arc::clone(&bell);
        let notifier = thread::spawn(move || {
            notifier.publish();
            notifier.publish();
        });
        let mut waiters = [Waiter::new(&bell.words, EVENTFD_0)];
        let mut listen_for = |wanted| {
            if listen(&mut waiters, &mut Eventfd(&bell, 0), || bell.has(wanted)).unwrap() {
                bell.write_token(0);
            }
        };
        listen_for(1);
        let mut taken = 0;
        while taken < 2 {
            bell.poll(0);
            if bell.has(taken + 1) {
                taken += 1;
            } else {
                listen_for(taken + 1);
            }
        }
        notifier.join().unwrap();
    });
}
