// SPDX-License-Identifier: MIT OR Apache-2.0
//! An eventfd in an epoll set, level triggered: how most event loops are woken.

use super::descriptor::DescriptorLink;
use super::epoll::{EpollWaiter, InASet};
use super::eventfd::EventfdRead;
use super::{Explanation, Mechanism};

pub(crate) struct EventfdEpoll;

impl InASet for EventfdRead {}

impl Mechanism for EventfdEpoll {
    type Link = DescriptorLink<EventfdRead, EpollWaiter<EventfdRead>>;
    const NAME: &'static str = "eventfd-epoll";
    const COALESCES: bool = true;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "eventfd in an epoll set, level triggered, then read",
        how: "The notifier writes 1. The waiter sleeps in epoll_wait(2) on a set that holds the \
            eventfd and, once told that it is readable, reads it, which sets the sum to zero.",
        kernel: "The set hangs on the eventfd's wait queue for good. The write calls its \
            callback, which puts the eventfd on the ready list and wakes the sleeper; \
            epoll_wait asks the eventfd again, reports it and, being level triggered, keeps it \
            on the list until a later call finds it unreadable.",
        limits: "Two system calls a wake-up, and a look at the eventfd more per epoll_wait \
            than edge triggered. Notifications before a read merge. The timed wait is \
            epoll_pwait2(2) (kernel 5.11; before that milliseconds only).",
        sources: &[
            "epoll(7), epoll_wait(2), eventfd(2)",
            "Linux fs/eventpoll.c, ep_poll_callback and ep_send_events",
        ],
    };
}
