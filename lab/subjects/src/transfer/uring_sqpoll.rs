// SPDX-License-Identifier: MIT OR Apache-2.0
//! io_uring with IORING_SETUP_SQPOLL: a thread of the kernel looks for submissions; the waiter
//! sleeps until the device interrupts.

use super::ring::{self, Ring};
use super::{Engine, Noticed, Place, Transfer};
use crate::mechanism::{Explanation, Fault, OpenError, Unavailable};

/// The ring whose submissions are polled.
#[derive(Debug)]
pub(super) struct UringSqpoll;

struct Waits<'buffer>(Ring<'buffer>);

impl Engine for UringSqpoll {
    fn name(&self) -> &'static str {
        "uring-sqpoll"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "io_uring with IORING_SETUP_SQPOLL: a kernel thread takes submissions, an \
                interrupt ends them",
            how: "Puts the operation into the ring, which a thread of the kernel sees, and sleeps \
                in io_uring_enter(2) for the completion.",
            kernel: "A thread of this process in the kernel looks at the ring all the time and \
                gives requests to the device; completions come by interrupt.",
            limits: "The thread keeps a CPU busy whether there is work or not; its time is in the \
                CPU column. It is placed on the second CPU.",
            sources: &["io_uring_setup(2) IORING_SETUP_SQPOLL", "Linux io_uring/sqpoll.c"],
        }
    }
    fn noticed(&self) -> Noticed {
        Noticed::ByInterrupt
    }
    fn kernel_thread(&self) -> bool {
        true
    }
    fn available(&self) -> Result<(), Unavailable> {
        ring::probe(ring::SQPOLL, "IORING_SETUP_SQPOLL for this user", "5.11")
    }
    fn open<'buffer>(&self, place: Place<'buffer>) -> Result<Box<dyn Transfer + 'buffer>, OpenError> {
        Ok(Box::new(Waits(Ring::open(place, ring::SQPOLL)?)))
    }
}

impl Transfer for Waits<'_> {
    #[inline]
    fn once(&mut self, offset: u64) -> Result<(), Fault> {
        self.0.enter(offset)
    }
}
