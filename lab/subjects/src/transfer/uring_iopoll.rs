// SPDX-License-Identifier: MIT OR Apache-2.0
//! io_uring with IORING_SETUP_IOPOLL: the call looks at the device's
//! queue until the block is there.

use super::ring::{self, Ring};
use super::{Engine, Explanation, Noticed};

pub(super) const ENGINE: Engine = Engine {
    name: "uring-iopoll",
    explanation: Explanation {
        summary: "io_uring with IORING_SETUP_IOPOLL: one call a block that looks at the device's queue",
        how: "As uring, on a ring set up with IORING_SETUP_IOPOLL.",
        kernel: "The request goes to a queue of the device that has no interrupt; \
            io_uring_enter looks at that queue until the completion is there.",
        limits: "The waiter's CPU is busy for as long as the device takes. Only a device with \
            poll queues takes part; elsewhere the kernel says EOPNOTSUPP, or older ones \
            interrupt all the same, which is counted here.",
        sources: &[
            "io_uring_setup(2) IORING_SETUP_IOPOLL",
            "Linux io_uring/rw.c, io_do_iopoll; block/blk-core.c, bio_poll",
        ],
    },
    noticed: Noticed::ByPolling,
    kernel_thread: false,
    available: || ring::probe(ring::IOPOLL, "IORING_SETUP_IOPOLL", "5.1"),
    open: |place| Ok(Box::new(Ring::open(place, ring::IOPOLL)?)),
};
