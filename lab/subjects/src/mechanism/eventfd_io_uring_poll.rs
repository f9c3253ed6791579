// SPDX-License-Identifier: MIT OR Apache-2.0
//! eventfd, watched by one operation of io_uring that goes on: multishot `POLL_ADD`.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use io_uring::{opcode, types};

use super::descriptor::{DescriptorLink, Reads};
use super::eventfd::EventfdRead;
use super::uring::{self, Completion, Ring, outcome};
use super::{Explanation, Fault, Mechanism, OpenError, Unavailable, Waiter, Woken};

pub(crate) struct EventfdIoUringPoll;

/// The end that sleeps at its ring.
pub(crate) struct PollWaiter {
    ring: Ring,
    fd: OwnedFd,
    /// Whether the operation goes on.
    armed: bool,
}

impl Mechanism for EventfdIoUringPoll {
    type Link = DescriptorLink<EventfdRead, PollWaiter>;
    const NAME: &'static str = "eventfd-io-uring-poll";
    const COALESCES: bool = true;
    const USUAL: bool = false;

    const EXPLANATION: Explanation = Explanation {
        summary: "eventfd, watched by a multishot POLL_ADD of io_uring and never read",
        how: "The notifier writes 1 with write(2). The waiter has submitted IORING_OP_POLL_ADD \
            with IORING_POLL_ADD_MULTI once; from then on every write is a completion, for which \
            it sleeps in io_uring_enter(2). It reads nothing, as with EPOLLET, and the sum grows.",
        kernel: "The operation stays on the eventfd's wait queue. The write calls it, which \
            queues task work for the waiter and wakes it; the task work asks the eventfd \
            whether it is ready and posts the completion.",
        limits: "Kernel 5.13. Two writes before the task work has run are one completion. The \
            operation ends where its completions find no room (no IORING_CQE_F_MORE) and is \
            then submitted anew. Rings are closed to many containers and can be disabled for \
            all (kernel.io_uring_disabled). The timed wait is io_uring_enter's own \
            (IORING_ENTER_EXT_ARG); a look reads the ring without a system call.",
        sources: &[
            "io_uring_enter(2), io_uring_prep_poll_multishot(3)",
            "Linux io_uring/poll.c, io_poll_check_events",
        ],
    };
}

impl Reads for PollWaiter {
    fn of(fd: OwnedFd) -> Result<Self, OpenError> {
        Ok(Self { ring: Ring::new()?, fd, armed: false })
    }

    fn probe(&self) -> Result<(), Unavailable> {
        uring::probe(opcode::PollAdd::CODE, "IORING_OP_POLL_ADD", "5.1")?;
        // No flag tells of the multishot form; this one came with the same kernel.
        if self.ring.0.params().is_feature_resource_tagging() {
            return Ok(());
        }
        Err(Unavailable::because("this kernel's io_uring has no multishot POLL_ADD (kernel 5.13 brought it)"))
    }
}

impl PollWaiter {
    /// Queues the operation if it does not go on.
    #[inline]
    fn arm(&mut self) -> Result<bool, Fault> {
        if self.armed {
            return Ok(false);
        }
        let fd = types::Fd(self.fd.as_raw_fd());
        let watch = opcode::PollAdd::new(fd, libc::POLLIN as u32).multi(true).build();
        // SAFETY: the entry points to nothing.
        unsafe { self.ring.push(&watch) }?;
        self.armed = true;
        Ok(true)
    }

    #[inline]
    fn completed(&mut self, found: Option<Completion>) -> Result<bool, Fault> {
        let Some(found) = found else { return Ok(false) };
        self.armed = found.goes_on;
        outcome(found.result).map(|_| true).map_err(Fault::of("IORING_OP_POLL_ADD"))
    }
}

impl Waiter for PollWaiter {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        self.arm()?;
        let found = self.ring.wait_whole(None)?;
        self.completed(found).map(drop)
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        self.arm()?;
        let found = self.ring.wait_whole(Some(timeout))?;
        self.completed(found).map(Woken::when)
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        if self.arm()? {
            self.ring.submit()?;
        }
        let found = self.ring.look_whole()?;
        self.completed(found)
    }
}
