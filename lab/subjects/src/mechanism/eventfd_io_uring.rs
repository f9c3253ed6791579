// SPDX-License-Identifier: MIT OR Apache-2.0
//! An eventfd read through io_uring.

use super::eventfd::EventfdRead;
use super::uring_read::{ReadByRing, ReadLink};
use super::{Explanation, Mechanism};

pub(crate) struct EventfdIoUring;

impl ReadByRing for EventfdRead {}

impl Mechanism for EventfdIoUring {
    type Link = ReadLink<EventfdRead>;
    const NAME: &'static str = "eventfd-io-uring";
    const COALESCES: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "eventfd, read by an operation of io_uring",
        how: "The notifier writes 1 with write(2). The waiter submits IORING_OP_READ on the \
            eventfd and sleeps in io_uring_enter(2) until it is completed, in one call for both.",
        kernel: "The read finds nothing and leaves an entry on the eventfd's wait queue. The \
            write calls it, which queues task work for the waiter and wakes it; the waiter \
            does the read itself on its way, posts the completion and returns.",
        limits: "Notifications before a read merge. Rings are closed to many containers and \
            can be disabled for all (kernel.io_uring_disabled). The ring has no flags; \
            IORING_SETUP_DEFER_TASKRUN would move the task work into the waiting call alone. \
            The timed wait is io_uring_enter's own (IORING_ENTER_EXT_ARG, kernel 5.11); a look \
            submits the read, after which looking is free.",
        sources: &[
            "io_uring_enter(2), eventfd(2)",
            "Linux io_uring/poll.c, io_poll_wake; io_uring/io_uring.c, io_cqring_wait",
        ],
    };
}
