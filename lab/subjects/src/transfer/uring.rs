// SPDX-License-Identifier: MIT OR Apache-2.0
//! io_uring without flags: one call submits and sleeps until the device interrupts.

use super::ring::{self, Ring};
use super::{Engine, Explanation, Noticed};

pub(super) const ENGINE: Engine = Engine {
    name: "uring",
    explanation: Explanation {
        summary: "io_uring: one call a block, ended by an interrupt",
        how: "Puts IORING_OP_READ or IORING_OP_WRITE into the ring and calls io_uring_enter(2) \
            once, to submit and to wait for one completion.",
        kernel: "As sync; the interrupt queues task work for the waiter, which posts the \
            completion on its way out of its sleep.",
        limits: "With one transfer under way a ring saves no call. Buffer and file are not \
            registered, so that all ways do the same work.",
        sources: &["io_uring_enter(2), io_uring_setup(2)", "Linux io_uring/rw.c"],
    },
    noticed: Noticed::ByInterrupt,
    kernel_thread: false,
    available: || ring::probe(0, "io_uring", "5.6"),
    open: |place| Ok(Box::new(Ring::open(place, 0)?)),
};
