// SPDX-License-Identifier: MIT OR Apache-2.0
//! io_uring with IORING_SETUP_SQPOLL and IORING_SETUP_IOPOLL: a thread of the kernel submits and
//! polls, the waiter looks at memory.

use super::ring::{self, Ring};
use super::{Engine, Explanation, Fault, Noticed, Transfer};

struct Looks<'buffer>(Ring<'buffer>);

pub(super) const ENGINE: Engine = Engine {
    name: "uring-sqpoll-iopoll",
    explanation: Explanation {
        summary: "io_uring with IORING_SETUP_SQPOLL and IOPOLL: a kernel thread submits and \
            polls, no calls at all",
        how: "Puts the operation into the ring and looks at the completion queue in its own \
            memory until it is there.",
        kernel: "The kernel's thread submits to a queue without an interrupt, and looks at \
            that queue until it can post the completion.",
        limits: "Two CPUs are busy for one transfer. Both are in the CPU column.",
        sources: &["io_uring_setup(2) IORING_SETUP_SQPOLL, IORING_SETUP_IOPOLL", "Linux io_uring/sqpoll.c"],
    },
    noticed: Noticed::ByPolling,
    kernel_thread: true,
    available: || {
        ring::probe(
            ring::SQPOLL | ring::IOPOLL,
            "IORING_SETUP_SQPOLL with IORING_SETUP_IOPOLL for this user",
            "5.11",
        )
    },
    open: |place| Ok(Box::new(Looks(Ring::open(place, ring::SQPOLL | ring::IOPOLL)?))),
};

impl Transfer for Looks<'_> {
    #[inline]
    fn once(&mut self, offset: u64) -> Result<(), Fault> {
        self.0.leave(offset)
    }
}
