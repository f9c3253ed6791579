// SPDX-License-Identifier: MIT OR Apache-2.0
//! Races of three parties: waiters of different kinds at one bell, one waiter at several bells.

use super::platform::{Bell, EVENTFD_1, Eventfd, OnFutex, OnToken, explore_bounded, meanwhile, race};
use crate::wake::{Complete, Sleep, Slept, Waiter, WaiterSlot, wait_until};
use loom::sync::Arc;

#[test]
fn publish_and_futex_wait_and_token_wait() {
    explore_bounded(|| race(Bell::new(), [on_futex, on_token], Bell::publish::<Complete>));
}

fn on_futex(bell: &Bell) {
    bell.wait::<OnFutex, Complete>(1);
}

fn on_token(bell: &Bell) {
    bell.wait::<OnToken, Complete>(1);
}

fn on_the_other_token(bell: &Bell) {
    let mut waiters = [Waiter::new(&bell.words, EVENTFD_1)];
    wait_until(&mut waiters, &mut Eventfd(bell, 1), || bell.has(1)).unwrap();
}

#[test]
fn publish_and_token_wait_and_token_wait() {
    explore_bounded(|| race(Bell::new(), [on_token, on_the_other_token], Bell::publish::<Complete>));
}

/// Two bells whose notifiers wake one queue: what `futex_waitv` does, which compares every word and
/// joins every queue under their locks.
struct Waitv<'a> {
    bells: [&'a WakeTarget; 2],
}

struct WakeTarget {
    bell: Bell,
    queue: Arc<(loom::sync::Mutex<u32>, loom::sync::Condvar)>,
}

impl WakeTarget {
    fn publish(&self) {
        self.bell.published.fetch_add(1, loom::sync::atomic::Ordering::Relaxed);
        if self.bell.words.announce().futex() {
            *self.queue.0.lock().unwrap() += 1;
            self.queue.1.notify_all();
        }
    }
}

impl Sleep for Waitv<'_> {
    type Error = ();
    fn consume(&mut self, _: usize) -> Result<(), ()> {
        Ok(())
    }
    fn barrier(&mut self, _: usize) -> Result<(), ()> {
        unreachable!("every notifier here has its fence")
    }
    fn sleep(&mut self, waiters: &[Waiter<'_>]) -> Result<Slept, ()> {
        let (lock, changed) = &*self.bells[0].queue;
        let mut wakes = lock.lock().unwrap();
        let before = *wakes;
        let same = waiters.iter().all(|waiter| {
            waiter.words().epoch().load(loom::sync::atomic::Ordering::Relaxed) == waiter.ticket()
        });
        while same && *wakes == before {
            wakes = changed.wait(wakes).unwrap();
        }
        Ok(Slept::Woken)
    }
}

#[test]
fn publish_and_publish_elsewhere_and_wait_for_any_then_both() {
    explore_bounded(|| {
        let queue = Arc::new((loom::sync::Mutex::new(0), loom::sync::Condvar::new()));
        let bells = [(); 2].map(|()| Arc::new(WakeTarget { bell: Bell::new(), queue: Arc::clone(&queue) }));
        let notifiers = bells.each_ref().map(|target| meanwhile(target, WakeTarget::publish));
        let mut waiters = [0, 1].map(|index: usize| Waiter::new(&bells[index].bell.words, WaiterSlot::FUTEX));
        let mut sleeper = Waitv { bells: [&bells[0], &bells[1]] };
        for wanted in 1..=2 {
            let heard = || bells.iter().filter(|target| target.bell.has(1)).count() >= wanted;
            assert!(wait_until(&mut waiters, &mut sleeper, heard).unwrap().ready);
        }
        for notifier in notifiers {
            notifier.join().unwrap();
        }
    });
}
