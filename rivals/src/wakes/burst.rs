// SPDX-License-Identifier: MIT OR Apache-2.0
//! The notifying side: bursts with pseudo-random gaps, and silence
//! after each until everything was seen.

use crate::clock::ticks;
use crate::wakes::shared::Shared;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

/// Notifications in a burst, and the widest gap between them in pauses of the processor: wide gaps,
/// in which the waiter falls asleep; narrow ones, about as long as falling asleep takes; none.
const BURSTS: [(u32, u32); 3] = [(20, 400), (20, 30), (1000, 1)];

/// Looks for an end of the silence before it naps between them: a
/// waiter that is stuck is to have the processor.
const LOOKS: u32 = 2000;
const NAP: Duration = Duration::from_millis(1);

fn one(notify: &mut dyn FnMut(), shared: &Shared) {
    // Release: what a notification tells of is there before it.
    shared.published.fetch_add(1, Release);
    notify();
    // The latest of all notifiers': one that was held up between the two does not set it back.
    shared.last.fetch_max(ticks(), Relaxed);
    shared.completed.fetch_add(1, Release);
}

/// Notifies until told to stop, and what was asked for singly if `first`.
pub fn bursts(notify: &mut dyn FnMut(), shared: &Shared, first: bool, seed: u32) {
    // Zero is the one state that xorshift never leaves.
    let mut shuffle = seed.wrapping_mul(0x9e37_79b9) | 1;
    while shared.stop.load(Relaxed) == 0 {
        let (count, widest) = BURSTS[shuffle as usize / 7 % BURSTS.len()];
        for _ in 0..count {
            one(notify, shared);
            shuffle ^= shuffle << 13;
            shuffle ^= shuffle >> 17;
            shuffle ^= shuffle << 5;
            for _ in 0..shuffle % widest {
                std::hint::spin_loop();
            }
        }
        let mut looks = 0;
        while shared.seen.load(Acquire) < shared.published.load(Acquire) {
            if first && shared.given.load(Relaxed) < shared.asked.load(Acquire) {
                one(notify, shared);
                shared.given.fetch_add(1, Release);
            }
            looks += 1;
            if looks < LOOKS {
                std::thread::yield_now();
            } else {
                std::thread::sleep(NAP);
            }
        }
    }
    shared.stopped.fetch_add(1, Release);
}
