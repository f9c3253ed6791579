// SPDX-License-Identifier: MIT OR Apache-2.0
//! An eventfd in an epoll set, edge triggered: the event itself is
//! the notification, and nothing is read.

use super::descriptor::{DescriptorLink, Descriptors, Ends, LONGEST};
use super::epoll::{EpollWaiter, InASet};
use super::eventfd::EventfdRead;
use super::{Explanation, Mechanism, OpenError};

pub(crate) struct EventfdEpollEt;

impl Descriptors for EventfdEpollEt {
    const TOKEN: usize = LONGEST;
    fn open() -> Result<Ends, OpenError> {
        EventfdRead::open()
    }
}

impl InASet for EventfdEpollEt {
    const EDGE: bool = true;
}

impl Mechanism for EventfdEpollEt {
    type Link = DescriptorLink<Self, EpollWaiter<Self>>;
    const NAME: &'static str = "eventfd-epoll-et";
    const COALESCES: bool = true;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "eventfd in an epoll set, edge triggered and never read",
        how: "The notifier writes 1. The waiter sleeps in epoll_wait(2) on a set that holds \
            the eventfd with EPOLLET: every write is an event, whether the sum was read or \
            not, so the read is left out and the sum grows.",
        kernel: "As eventfd-epoll, but the eventfd leaves the ready list as soon as it is reported.",
        limits: "One system call a wake-up. The sum reaches 2^64-2 after more notifications than a \
            machine can make in a century; a write there would block. Two events before a wait are \
            one. The timed wait is epoll_pwait2(2) (kernel 5.11; before that milliseconds only).",
        sources: &[
            "epoll(7), \"Level-triggered and edge-triggered\"",
            "Linux fs/eventpoll.c, ep_send_events",
        ],
    };
}
