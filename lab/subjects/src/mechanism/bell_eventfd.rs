// SPDX-License-Identifier: MIT OR Apache-2.0
//! This project's bell, whose waiter sleeps on an eventfd.

use super::library::BellLink;
use super::{Explanation, Mechanism, Waits};

pub(crate) struct BellEventfd;

impl Mechanism for BellEventfd {
    type Link = BellLink<doorbell::wait::Eventfd>;
    const NAME: &'static str = "bell-eventfd";
    const WAITS: Waits = Waits::Blocks;
    const COALESCES: bool = true;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "this project's bell, sleeping in poll on an eventfd",
        how: "The notifier counts the ring with one locked addition and looks whether somebody \
            sleeps; only then does it make a system call. The waiter consumes its token, arms, \
            looks again and sleeps in poll(2) on an eventfd of its own.",
        kernel: "As eventfd and poll; the write is left out when nobody sleeps.",
        limits: "Rings before the waiter looks are one. At most eight waiters of a bell have \
            an eventfd. `Bell::into_fd` makes it a file for an event loop.",
        sources: &[
            "library/core/src/wake.rs: the protocol and the argument",
            "book/bell.md, book/channels.md",
        ],
    };
}
