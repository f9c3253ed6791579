// SPDX-License-Identifier: MIT OR Apache-2.0
//! This project's bell, whose waiter is woken by SENDUIPI.

use super::library::BellLink;
use super::{Explanation, Mechanism};

pub(crate) struct BellUintr;

impl Mechanism for BellUintr {
    type Link = BellLink<doorbell::wait::Eventfd, true>;
    const NAME: &'static str = "bell-uintr";
    const COALESCES: bool = true;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "this project's bell, woken by SENDUIPI",
        how: "As bell-eventfd, but that the waiter's descriptor is a vector of user interrupts \
            without a handler, which is read and polled as an eventfd is, and that the \
            notifier rings a sleeper by SENDUIPI.",
        kernel: "As uintr-epoll, with poll(2); the instruction is left out when nobody sleeps.",
        limits: "As bell-eventfd; for threads of a process and its children. For a sleeper it \
            costs the two sides together more than an eventfd (uintr/driver/README.md); what \
            it saves is the notifier's system call.",
        sources: &["library/core/src/wake.rs", "library/doorbell/src/connected.rs", "uintr/driver/poll.c"],
    };
}
