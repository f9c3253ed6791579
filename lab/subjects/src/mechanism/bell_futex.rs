// SPDX-License-Identifier: MIT OR Apache-2.0
//! This project's bell, whose waiter sleeps at once.

use super::library::BellLink;
use super::{Explanation, Mechanism, Waits};

pub(crate) struct BellFutex;

impl Mechanism for BellFutex {
    type Link = BellLink<doorbell::wait::Futex>;
    const NAME: &'static str = "bell-futex";
    const WAITS: Waits = Waits::Blocks;
    const COALESCES: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "this project's bell, sleeping on a futex",
        how: "The notifier counts the ring with one locked addition and looks whether somebody \
            sleeps; only then does it make a system call. The waiter arms, looks again and \
            sleeps on a futex.",
        kernel: "As the futex; the wake-up is left out when nobody sleeps.",
        limits: "Rings before the waiter looks are one.",
        sources: &[
            "library/core/src/wake.rs: the protocol and the argument",
            "book/bell.md, book/channels.md",
        ],
    };
}
