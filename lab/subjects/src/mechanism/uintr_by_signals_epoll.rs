// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `uintr-epoll` is on a machine without user interrupts: an eventfd.

use super::uintr_epoll::PolledLink;
use super::user_interrupt::BySignals;
use super::{Explanation, Mechanism};

pub(crate) struct UintrBySignalsEpoll;

impl Mechanism for UintrBySignalsEpoll {
    type Link = PolledLink<BySignals>;
    const NAME: &'static str = "uintr-by-signals-epoll";
    const COALESCES: bool = true;
    const DESCRIPTOR: bool = true;
    // As uintr-by-signals.
    const USUAL: bool = false;

    const EXPLANATION: Explanation = Explanation {
        summary: "user interrupts by signals, to a vector in an epoll set, then read",
        how: "The calls are those of uintr-epoll, made by libuintr of what every Linux has: a \
            vector without a handler is an eventfd, which the notifier writes. The waiter sleeps \
            in epoll_wait(2) on a set that holds it, level triggered, and reads it. What it takes \
            more than eventfd-epoll is the library's: a send holds its connection while it writes.",
        kernel: "As eventfd-epoll.",
        limits: "As eventfd-epoll: one count, which a read takes whole. 256 connections of a \
            process. Whoever waits is not told that the vector's maker has ended.",
        sources: &["uintr/driver/user/signals.c, poll_fd; uintr(3)", "epoll(7), eventfd(2)"],
    };
}
