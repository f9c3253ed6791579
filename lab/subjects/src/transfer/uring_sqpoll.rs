// SPDX-License-Identifier: MIT OR Apache-2.0
//! io_uring with IORING_SETUP_SQPOLL: a thread of the kernel looks for submissions; the waiter
//! sleeps until the device interrupts.

use super::ring::{self, Ring};
use super::{Engine, Explanation, Noticed};

pub(super) const ENGINE: Engine = Engine {
    name: "uring-sqpoll",
    explanation: Explanation {
        summary: "io_uring with IORING_SETUP_SQPOLL: a kernel thread takes submissions, an \
            interrupt ends them",
        how: "Puts the operation into the ring, which a thread of the kernel sees, and sleeps \
            in io_uring_enter(2) for the completion.",
        kernel: "A thread of this process in the kernel looks at the ring all the time and \
            gives requests to the device; completions come by interrupt.",
        limits: "The thread keeps a CPU busy whether there is work or not; its time is in the \
            CPU column. It is placed on the second CPU.",
        sources: &["io_uring_setup(2) IORING_SETUP_SQPOLL", "Linux io_uring/sqpoll.c"],
    },
    noticed: Noticed::ByInterrupt,
    kernel_thread: true,
    available: || ring::probe(ring::SQPOLL, "IORING_SETUP_SQPOLL for this user", "5.11"),
    open: |place| Ok(Box::new(Ring::open(place, ring::SQPOLL)?)),
};
