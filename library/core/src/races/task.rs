// SPDX-License-Identifier: MIT OR Apache-2.0
//! Races of notifiers with a task that awaits: a runtime polls the eventfd for it, edge-triggered,
//! and remembers that it was readable until the task says that it has seen that. The task may be
//! dropped in the middle of a wait.

use super::platform::{Bell, EVENTFD_0, Eventfd, OnFutex, caught, explore_bounded, race, without};
use crate::wake::{Complete, Steps, Waiter, listen_with};
use loom::sync::atomic::Ordering;
use loom::sync::{Condvar, Mutex};

/// A bell whose first eventfd a runtime watches for the task.
struct Watched {
    bell: Bell,
    /// The runtime's memory: has the file become readable since the task last forgot it?
    ready: (Mutex<bool>, Condvar),
}

impl Watched {
    fn new() -> Self {
        Self { bell: Bell::new(), ready: (Mutex::new(false), Condvar::new()) }
    }

    /// A message, and what the kernel and the runtime make of its token: the edge is reported some
    /// time after the token was written, and not if somebody has consumed that by then.
    fn publish(&self) {
        self.bell.published.fetch_add(1, Ordering::Relaxed);
        let woken = self.bell.words.announce();
        self.bell.wake(woken);
        if woken.eventfds().next().is_some() && self.bell.has_token(0) {
            *self.ready.0.lock().unwrap() = true;
            self.ready.1.notify_all();
        }
    }

    fn publish_twice(&self) {
        self.publish();
        self.publish();
    }

    /// Is message number `wanted` there? If not, the task may park.
    fn listen<S: Steps>(&self, waiters: &mut [Waiter<'_>], wanted: u32) -> bool {
        listen_with::<S, _>(waiters, &mut Eventfd(&self.bell, 0), || self.bell.has(wanted)).unwrap()
    }

    fn forget(&self) {
        *self.ready.0.lock().unwrap() = false;
    }

    fn park(&self) {
        let mut ready = self.ready.0.lock().unwrap();
        while !*ready {
            ready = self.ready.1.wait(ready).unwrap();
        }
    }
}

/// When the task forgets that the file was readable.
#[derive(Clone, Copy)]
enum Forget {
    BeforeListening,
    AfterListening,
}

/// What a task does that awaits message number `wanted`: `Async::poll_until` in the crate
/// `doorbell`. Its future is dropped so many times before it would park, and awaited anew.
fn receive<S: Steps>(watched: &Watched, wanted: u32, drops: u32, forget: Forget) {
    let mut drops = drops;
    let mut waiters = [Waiter::new(&watched.bell.words, EVENTFD_0)];
    while !watched.bell.has(wanted) {
        if let Forget::BeforeListening = forget {
            watched.forget();
        }
        if watched.listen::<S>(&mut waiters, wanted) {
            continue;
        }
        if let Forget::AfterListening = forget {
            watched.forget();
        }
        if drops > 0 {
            drops -= 1;
            continue;
        }
        watched.park();
    }
}

/// Two messages, one task. Before the second it drops its future `drops` times.
fn publish_twice_and_await_twice<S: Steps + 'static>(drops: u32, forget: Forget) {
    race(Watched::new(), [Watched::publish_twice], |watched| {
        receive::<S>(watched, 1, 0, forget);
        receive::<S>(watched, 2, drops, forget);
    });
}

#[test]
fn publish_twice_and_await_each() {
    explore_bounded(|| publish_twice_and_await_twice::<Complete>(0, Forget::BeforeListening));
}

#[test]
fn publish_twice_and_drop_the_await_and_await_again() {
    explore_bounded(|| publish_twice_and_await_twice::<Complete>(2, Forget::BeforeListening));
}

/// The eventfd's bit stays set after the future that was dropped; the futex's is another.
#[test]
fn publish_and_drop_the_await_and_wait_on_the_futex() {
    explore_bounded(|| {
        race(Watched::new(), [Watched::publish], |watched| {
            let mut waiters = [Waiter::new(&watched.bell.words, EVENTFD_0)];
            if !watched.listen::<Complete>(&mut waiters, 1) {
                watched.bell.wait::<OnFutex, Complete>(1);
            }
        });
    });
}

#[test]
fn forgetting_that_the_file_was_readable_after_listening_is_caught() {
    caught("deadlock", || publish_twice_and_await_twice::<Complete>(0, Forget::AfterListening));
}

without! {
    Steps:
    ArmBeforeConsume: CONSUME_BEFORE_ARM;
    NoCheckAfterArm: CHECK_AFTER_ARM;
}

#[test]
fn arming_before_consuming_the_token_is_caught_where_a_task_awaits() {
    caught("deadlock", || {
        publish_twice_and_await_twice::<ArmBeforeConsume>(0, Forget::BeforeListening);
    });
}

#[test]
fn returning_to_the_runtime_without_a_second_look_is_caught() {
    caught("deadlock", || {
        publish_twice_and_await_twice::<NoCheckAfterArm>(0, Forget::BeforeListening);
    });
}

/// The bit that the dropped wait set may have been taken since, with a message that was received.
#[test]
fn trusting_the_arming_of_a_wait_that_was_dropped_is_caught() {
    caught("deadlock", || {
        race(Watched::new(), [Watched::publish_twice], |watched| {
            let mut waiters = [Waiter::new(&watched.bell.words, EVENTFD_0)];
            let _dropped = watched.listen::<Complete>(&mut waiters, 1);
            while !watched.bell.has(2) {
                watched.forget();
                if !watched.bell.has(2) {
                    watched.park();
                }
            }
        });
    });
}
