// SPDX-License-Identifier: MIT OR Apache-2.0
//! io_uring's `MSG_RING`: one ring posts a completion into another.

use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::time::Duration;

use io_uring::{IoUring, Parameters, opcode, squeue, types};

use super::descriptor::again;
use super::uring::{self, Ring, outcome};
use super::{
    Carries, Explanation, Fault, Link, Mechanism, Notifier, OpenError, Site, Unavailable, Waiter, Woken,
};

pub(crate) struct IoUringMsgRing;

/// The waiter's ring, made before the sides part so that the notifier has its descriptor.
pub(crate) struct MsgRingLink {
    ring: OwnedFd,
    parameters: Parameters,
}

/// The end with a ring of its own.
pub(crate) struct Poster {
    ring: Ring,
    target: OwnedFd,
}

/// The end that waits for completions.
pub(crate) struct Recipient(Ring);

impl Mechanism for IoUringMsgRing {
    type Link = MsgRingLink;
    const NAME: &'static str = "io-uring-msg-ring";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Word;

    const EXPLANATION: Explanation = Explanation {
        summary: "io_uring MSG_RING: a completion posted into the waiter's ring",
        how: "Each side has a ring. The notifier submits IORING_OP_MSG_RING, which names the \
            waiter's ring by its descriptor; the waiter sleeps in io_uring_enter(2) until a \
            completion arrives.",
        kernel: "The operation runs within the notifier's io_uring_enter: it locks the target \
            ring, posts a completion there and wakes who waits for one. A target with \
            IORING_SETUP_DEFER_TASKRUN would get it as task work in place of that.",
        limits: "Kernel 5.18. Needs the target ring's descriptor: inherited, passed through a \
            Unix socket, or taken with pidfd_getfd(2). Completions beyond the ring's size wait \
            in a list of the kernel. Rings are closed to many containers and can be disabled \
            for all (kernel.io_uring_disabled). The timed wait is io_uring_enter's own \
            (IORING_ENTER_EXT_ARG); a look reads the ring without a system call.",
        sources: &["io_uring_prep_msg_ring(3), io_uring_enter(2)", "Linux io_uring/msg_ring.c"],
    };

    fn available() -> Result<(), Unavailable> {
        uring::probe(opcode::MsgRingData::CODE, "IORING_OP_MSG_RING", "5.18")
    }
}

impl Link for MsgRingLink {
    type Notifier = Poster;
    type Waiter = Recipient;
    fn open(_: &Site) -> Result<Self, OpenError> {
        let Ring(ring) = Ring::new()?;
        // SAFETY: the descriptor is open: `ring` is alive.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(ring.as_raw_fd()) };
        let fd = rustix::io::dup(fd).map_err(OpenError::of("dup"))?;
        Ok(Self { ring: fd, parameters: ring.params().clone() })
    }
    fn waiter(&self) -> Result<Recipient, OpenError> {
        let ring = again(&self.ring)?.into_raw_fd();
        // SAFETY: the descriptor is ours and that of a ring made with these parameters. The kernel allows
        // one queue to be mapped several times; only the waiter uses this ring's.
        unsafe { IoUring::from_fd(ring, self.parameters.clone()) }
            .map(|ring| Recipient(Ring(ring)))
            .map_err(OpenError::of("mmap(io_uring)"))
    }
    fn notifier(&self) -> Result<Poster, OpenError> {
        Ok(Poster { ring: Ring::new()?, target: again(&self.ring)? })
    }
}

impl Notifier for Poster {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        let target = types::Fd(self.target.as_raw_fd());
        // Only a failure is worth a completion in the notifier's own ring.
        let post = opcode::MsgRingData::new(target, 0, 0, None).build().flags(squeue::Flags::SKIP_SUCCESS);
        // SAFETY: the entry points to nothing.
        unsafe { self.ring.push(&post) }?;
        self.ring.submit()?;
        match self.ring.look()? {
            None => Ok(()),
            Some(result) => outcome(result).map(drop).map_err(Fault::of("IORING_OP_MSG_RING")),
        }
    }
}

impl Recipient {
    #[inline]
    fn received(result: Option<i32>) -> Result<bool, Fault> {
        let Some(result) = result else { return Ok(false) };
        outcome(result).map(|_| true).map_err(Fault::of("completion by IORING_OP_MSG_RING"))
    }
}

impl Waiter for Recipient {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        self.0.wait(None).and_then(Self::received).map(drop)
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        self.0.wait(Some(timeout)).and_then(Self::received).map(Woken::when)
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        self.0.look().and_then(Self::received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::Contexts;
    use doorbell_harness::arena::Arena;
    use doorbell_harness::run_dir::RunDir;

    /// A waiter that only looked once hung as soon as a notifier was a ring ahead of it.
    #[test]
    fn a_waiter_that_only_looks_sees_what_found_its_ring_full() {
        if let Err(lack) = IoUringMsgRing::available() {
            return doorbell_skipped::skip(lack);
        }
        let run_dir = RunDir::create().unwrap();
        let site = Site::new(Contexts::Threads, Arena::map(1 << 16).unwrap(), &run_dir);
        let link = MsgRingLink::open(&site).unwrap();
        let mut waiter = link.waiter().unwrap();
        let mut notifier = link.notifier().unwrap();
        for _ in 0..1000 {
            notifier.notify().unwrap();
        }
        let seen = (0..2000).filter(|_| waiter.poll().unwrap()).count();
        assert_eq!(seen, 1000);
    }
}
