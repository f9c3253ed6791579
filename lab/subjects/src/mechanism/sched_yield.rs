// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spinning politely: the waiter offers its CPU to others between two looks.

use std::sync::atomic::AtomicU32;

use super::watched_word::{Pause, WatchedLink};
use super::{Explanation, Mechanism, Notifiers, Waits};

pub(crate) struct SchedYield;

impl Pause for SchedYield {
    #[inline]
    fn between_looks(_: &AtomicU32, _: u32) {
        rustix::thread::sched_yield();
    }
}

impl Mechanism for SchedYield {
    type Link = WatchedLink<Self>;
    const NAME: &'static str = "sched-yield";
    const WAITS: Waits = Waits::Yields;
    const COALESCES: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;

    const EXPLANATION: Explanation = Explanation {
        summary: "look at a shared word, sched_yield(2) between looks",
        how: "The notifier stores the next number in a word of shared memory. The waiter \
            looks, and calls sched_yield(2) as long as the word has not changed.",
        kernel: "Notify: nothing. Each yield enters the scheduler, which runs another task of \
            the same CPU if one is due and else returns to the caller.",
        limits: "The waiter stays runnable: it costs a whole core unless others want it. Under \
            SCHED_OTHER the order after a yield is the scheduler's affair (sched_yield(2) \
            calls its use there unspecified), so that on one core a hop may take one switch or \
            several; under SCHED_FIFO it only yields to the same priority. The timed wait \
            reads the clock between yields.",
        sources: &[
            "sched_yield(2)",
            "Linux kernel/sched/syscalls.c, do_sched_yield; kernel/sched/fair.c, yield_task_fair",
        ],
    };
}
