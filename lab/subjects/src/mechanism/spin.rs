// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spinning on a shared word: the cheapest wake there is, paid for with a whole core.

use std::sync::atomic::AtomicU32;

use super::watched_word::{Pause, WatchedLink};
use super::{Explanation, Mechanism, Notifiers, Waits};

pub(crate) struct Spin;

impl Pause for Spin {
    #[inline(always)]
    fn between_looks(_: &AtomicU32, _: u32) {
        std::hint::spin_loop();
    }
}

impl Mechanism for Spin {
    type Link = WatchedLink<Self>;
    const NAME: &'static str = "spin";
    const WAITS: Waits = Waits::Spins;
    const COALESCES: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;

    const EXPLANATION: Explanation = Explanation {
        summary: "spin on a shared word",
        how: "The notifier stores the next number in a word of shared memory; the waiter loads \
            it until it changes.",
        kernel: "Nothing. The cache line moves from the writer's core to the reader's: two \
            coherence messages a hop.",
        limits: "Keeps a whole core busy while waiting; on one shared core the waiter holds up \
            its notifier until the scheduler intervenes, a time slice later. The timed wait \
            reads the clock at every look.",
        sources: &[
            "Intel SDM vol. 3A §10.4, cache coherence",
            "core-to-core-latency, c2clat: the bare form of this test",
        ],
    };
}
