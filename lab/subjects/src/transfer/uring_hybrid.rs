// SPDX-License-Identifier: MIT OR Apache-2.0
//! io_uring with IORING_SETUP_HYBRID_IOPOLL: sleep for a part of the usual time, look then.

use super::ring::{self, Ring};
use super::{Engine, Explanation, Noticed};

pub(super) const ENGINE: Engine = Engine {
    name: "uring-hybrid",
    explanation: Explanation {
        summary: "io_uring with IORING_SETUP_HYBRID_IOPOLL: sleeps half the usual time, then looks",
        how: "As uring-iopoll, with IORING_SETUP_HYBRID_IOPOLL too.",
        kernel: "The ring keeps the shortest time that a completion has taken, sleeps on a \
            timer for half of it, and looks at the queue after that.",
        limits: "Kernels of before 6.13 have it only as a setting of the whole device \
            (queue/io_poll_delay at 0 or more, up to Linux 5.19), which this program leaves \
            alone and reports.",
        sources: &[
            "io_uring_setup(2) IORING_SETUP_HYBRID_IOPOLL",
            "Linux io_uring/rw.c, io_hybrid_iopoll_delay",
        ],
    },
    noticed: Noticed::ByPolling,
    kernel_thread: false,
    available: || ring::probe(ring::IOPOLL | ring::HYBRID_IOPOLL, "IORING_SETUP_HYBRID_IOPOLL", "6.13"),
    open: |place| Ok(Box::new(Ring::open(place, ring::IOPOLL | ring::HYBRID_IOPOLL)?)),
};
