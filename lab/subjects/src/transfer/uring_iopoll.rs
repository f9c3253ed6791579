// SPDX-License-Identifier: MIT OR Apache-2.0
//! io_uring with IORING_SETUP_IOPOLL: the call looks at the device's
//! queue until the block is there.

use super::ring::{self, Ring};
use super::{Engine, Noticed, Place, Transfer};
use crate::mechanism::{Explanation, Fault, OpenError, Unavailable};

#[derive(Debug)]
pub(super) struct UringIopoll;

struct Waits<'buffer>(Ring<'buffer>);

impl Engine for UringIopoll {
    fn name(&self) -> &'static str {
        "uring-iopoll"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
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
        }
    }
    fn noticed(&self) -> Noticed {
        Noticed::ByPolling
    }
    fn available(&self) -> Result<(), Unavailable> {
        ring::probe(ring::IOPOLL, "IORING_SETUP_IOPOLL", "5.1")
    }
    fn open<'buffer>(&self, place: Place<'buffer>) -> Result<Box<dyn Transfer + 'buffer>, OpenError> {
        Ok(Box::new(Waits(Ring::open(place, ring::IOPOLL)?)))
    }
}

impl Transfer for Waits<'_> {
    #[inline]
    fn once(&mut self, offset: u64) -> Result<(), Fault> {
        self.0.enter(offset)
    }
}
