// SPDX-License-Identifier: MIT OR Apache-2.0
//! This project's bell, whose waiter spins as long as it pays and then sleeps.

use super::library::BellLink;
use super::{Explanation, Mechanism, Waits};

pub(crate) struct BellAdaptive;

impl Mechanism for BellAdaptive {
    type Link = BellLink<doorbell::wait::Adaptive>;
    const NAME: &'static str = "bell-adaptive";
    const WAITS: Waits = Waits::Adapts;
    const COALESCES: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "this project's bell, spinning as long as it pays",
        how: "The notifier counts the ring with one locked addition and looks whether somebody \
            sleeps; only then does it make a system call. The waiter spins for a window \
            learned from its own waits, then arms, looks again and sleeps on a futex.",
        kernel: "Nothing while the waiter spins; else as the futex.",
        limits: "Rings before the waiter looks are one. While it learns, a wait may cost more \
            than the best fixed policy.",
        sources: &[
            "library/core/src/wake.rs: the protocol and the argument",
            "book/bell.md, book/channels.md",
        ],
    };
}
