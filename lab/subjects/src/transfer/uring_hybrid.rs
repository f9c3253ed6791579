// SPDX-License-Identifier: MIT OR Apache-2.0
//! io_uring with IORING_SETUP_HYBRID_IOPOLL: sleep for a part of the usual time, look then.

use super::ring::{self, Ring};
use super::{Engine, Noticed, Place, Transfer};
use crate::mechanism::{Explanation, Fault, OpenError, Unavailable};

/// The ring that sleeps before it polls.
#[derive(Debug)]
pub(super) struct UringHybrid;

struct Waits<'buffer>(Ring<'buffer>);

impl Engine for UringHybrid {
    fn name(&self) -> &'static str {
        "uring-hybrid"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
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
        }
    }
    fn noticed(&self) -> Noticed {
        Noticed::ByPolling
    }
    fn available(&self) -> Result<(), Unavailable> {
        ring::probe(ring::IOPOLL | ring::HYBRID_IOPOLL, "IORING_SETUP_HYBRID_IOPOLL", "6.13")
    }
    fn open<'buffer>(&self, place: Place<'buffer>) -> Result<Box<dyn Transfer + 'buffer>, OpenError> {
        Ok(Box::new(Waits(Ring::open(place, ring::IOPOLL | ring::HYBRID_IOPOLL)?)))
    }
}

impl Transfer for Waits<'_> {
    #[inline]
    fn once(&mut self, offset: u64) -> Result<(), Fault> {
        self.0.enter(offset)
    }
}
