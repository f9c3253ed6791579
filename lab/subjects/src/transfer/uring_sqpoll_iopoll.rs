// SPDX-License-Identifier: MIT OR Apache-2.0
//! io_uring with IORING_SETUP_SQPOLL and IORING_SETUP_IOPOLL: a thread of the kernel submits and
//! polls, the waiter looks at memory.

use super::ring::{self, Ring};
use super::{Engine, Noticed, Place, Transfer};
use crate::mechanism::{Explanation, Fault, OpenError, Unavailable};

/// The ring in which everything is polled.
#[derive(Debug)]
pub(super) struct UringSqpollIopoll;

struct Waits<'buffer>(Ring<'buffer>);

impl Engine for UringSqpollIopoll {
    fn name(&self) -> &'static str {
        "uring-sqpoll-iopoll"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "io_uring with IORING_SETUP_SQPOLL and IOPOLL: a kernel thread submits and \
                polls, no calls at all",
            how: "Puts the operation into the ring and looks at the completion queue in its own \
                memory until it is there.",
            kernel: "The kernel's thread submits to a queue without an interrupt, and looks at \
                that queue until it can post the completion.",
            limits: "Two CPUs are busy for one transfer. Both are in the CPU column.",
            sources: &[
                "io_uring_setup(2) IORING_SETUP_SQPOLL, IORING_SETUP_IOPOLL",
                "Linux io_uring/sqpoll.c",
            ],
        }
    }
    fn noticed(&self) -> Noticed {
        Noticed::ByPolling
    }
    fn kernel_thread(&self) -> bool {
        true
    }
    fn available(&self) -> Result<(), Unavailable> {
        ring::probe(
            ring::SQPOLL | ring::IOPOLL,
            "IORING_SETUP_SQPOLL with IORING_SETUP_IOPOLL for this user",
            "5.11",
        )
    }
    fn open<'buffer>(&self, place: Place<'buffer>) -> Result<Box<dyn Transfer + 'buffer>, OpenError> {
        Ok(Box::new(Waits(Ring::open(place, ring::SQPOLL | ring::IOPOLL)?)))
    }
}

impl Transfer for Waits<'_> {
    #[inline]
    fn once(&mut self, offset: u64) -> Result<(), Fault> {
        self.0.leave(offset)
    }
}
