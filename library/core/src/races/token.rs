// SPDX-License-Identifier: MIT OR Apache-2.0
//! Races of notifiers with waiters that sleep on a token of their own.

use super::any_waiter;
use super::platform::{Bell, EVENTFD_0, Eventfd, OnToken, explore, explore_bounded, race};
use crate::wake::{Complete, Waiter, listen};
use loom::sync::atomic::Ordering;

#[test]
fn publish_and_wait() {
    explore(any_waiter::publish_and_wait::<OnToken, Complete, Complete>);
}

#[test]
fn publish_twice_and_wait_twice() {
    explore_bounded(any_waiter::publish_twice_and_wait_twice::<OnToken, Complete, Complete>);
}

#[test]
fn timeout_and_publish_and_wait_again() {
    explore(any_waiter::timeout_and_publish_and_wait_again::<OnToken>);
}

#[test]
fn publish_and_publish_and_wait_twice() {
    explore_bounded(|| {
        race(Bell::new(), [Bell::publish::<Complete>; 2], |bell| {
            bell.wait::<OnToken, Complete>(1);
            bell.wait::<OnToken, Complete>(2);
        });
    });
}

/// A foreign event loop: poll, listen, take what is there, poll again.
#[test]
fn publish_twice_and_listen_after_each_poll() {
    explore_bounded(|| {
        race(Bell::new(), [Bell::publish_twice::<Complete>], |bell| {
            let mut waiters = [Waiter::new(&bell.words, EVENTFD_0)];
            let mut taken = 0;
            while taken < 2 {
                if listen(&mut waiters, &mut Eventfd(bell, 0), || bell.has(taken + 1)).unwrap() {
                    taken = bell.published.load(Ordering::Relaxed);
                } else {
                    bell.poll(0);
                }
            }
        });
    });
}

/// A foreign event loop that takes one message for each readiness. It consumes the token only when
/// it found nothing left, and writes one itself when `listen` finds a message after all.
#[test]
fn publish_twice_and_take_one_for_each_poll() {
    explore_bounded(|| {
        race(Bell::new(), [Bell::publish_twice::<Complete>], |bell| {
            let mut waiters = [Waiter::new(&bell.words, EVENTFD_0)];
            let mut listen_for = |wanted| {
                if listen(&mut waiters, &mut Eventfd(bell, 0), || bell.has(wanted)).unwrap() {
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
        });
    });
}
