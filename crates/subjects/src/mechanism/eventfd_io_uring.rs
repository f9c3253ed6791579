// SPDX-License-Identifier: MIT OR Apache-2.0
//! An eventfd read through io_uring.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use io_uring::{opcode, types};

use super::descriptor::{Writer, again};
use super::eventfd::{self, EventfdRead};
use super::uring::{self, Ring, outcome};
use super::{Explanation, Fault, Host, Link, Mechanism, OpenError, Site, Unavailable, Waiter, Woken};
use doorbell_harness::arena::Zeroed;

/// The waiter has a read under way and waits for its completion.
#[derive(Debug)]
pub struct EventfdIoUring;

/// The eventfd and where its sum is read to.
#[derive(Debug)]
pub struct EventfdIoUringLink {
    eventfd: OwnedFd,
    /// Written by the kernel; in memory that is never given back, as a read under way demands.
    sum: &'static Sum,
}

/// The sum of an eventfd as a read brings it, on cache lines of its own: the other direction's sum is written on the
/// other side's core.
#[derive(Debug)]
#[repr(C, align(128))]
struct Sum(AtomicU64);

// SAFETY: a padded `AtomicU64`, valid at zero.
unsafe impl Zeroed for Sum {}

/// The end that waits for completions.
#[derive(Debug)]
pub struct ReadWaiter {
    ring: Ring,
    eventfd: OwnedFd,
    sum: &'static Sum,
    /// Whether a read is under way: one that a timed wait or a look left serves the next.
    reading: bool,
}

impl Mechanism for EventfdIoUring {
    type Link = EventfdIoUringLink;
    const NAME: &'static str = "eventfd-io-uring";
    const COALESCES: bool = true;

    fn explanation() -> Explanation {
        Explanation {
            summary: "eventfd, read by an operation of io_uring",
            how: "The notifier writes 1 with write(2). The waiter submits IORING_OP_READ on the eventfd and sleeps in \
                  io_uring_enter(2) until it is completed, in one call for both.",
            kernel: "The read finds nothing and leaves an entry on the eventfd's wait queue. The write calls it, which \
                     queues task work for the waiter and wakes it; the waiter does the read itself on its way, posts \
                     the completion and returns.",
            limits: "Notifications before a read merge. Rings are closed to many containers and can be disabled for \
                     all (kernel.io_uring_disabled). The ring has no flags; IORING_SETUP_DEFER_TASKRUN would move the \
                     task work into the waiting call alone. The timed wait is io_uring_enter's own \
                     (IORING_ENTER_EXT_ARG, kernel 5.11); a look submits the read, after which looking is free.",
            sources: &[
                "io_uring_enter(2), eventfd(2)",
                "Linux io_uring/poll.c, io_poll_wake; io_uring/io_uring.c, io_cqring_wait",
            ],
        }
    }

    fn available(_: &Host) -> Result<(), Unavailable> {
        eventfd::probe()?;
        uring::probe(opcode::Read::CODE, "IORING_OP_READ", "5.6")
    }
}

impl Link for EventfdIoUringLink {
    type Notifier = Writer<EventfdRead>;
    type Waiter = ReadWaiter;
    fn open(site: &Site) -> Result<Self, OpenError> {
        Ok(Self { eventfd: eventfd::fresh()?, sum: site.place()? })
    }
    fn waiter(&self) -> Result<ReadWaiter, OpenError> {
        Ok(ReadWaiter { ring: Ring::new()?, eventfd: again(&self.eventfd)?, sum: self.sum, reading: false })
    }
    fn notifier(&self) -> Result<Writer<EventfdRead>, OpenError> {
        again(&self.eventfd).map(Writer::new)
    }
}

impl ReadWaiter {
    /// Queues a read unless one is under way.
    #[inline]
    fn queue_read(&mut self) -> Result<(), Fault> {
        if !self.reading {
            let fd = types::Fd(self.eventfd.as_raw_fd());
            let read =
                opcode::Read::new(fd, self.sum.0.as_ptr().cast(), size_of::<AtomicU64>() as u32).build();
            // SAFETY: the buffer is never given back, and the descriptor is checked by the kernel.
            unsafe { self.ring.push(&read) }?;
            self.reading = true;
        }
        Ok(())
    }

    /// What a completion, if there was one, means.
    #[inline]
    fn completed(&mut self, result: Option<i32>) -> Result<bool, Fault> {
        let Some(result) = result else { return Ok(false) };
        self.reading = false;
        outcome(result).map_err(Fault::of("IORING_OP_READ"))?;
        Ok(true)
    }
}

impl Waiter for ReadWaiter {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        self.queue_read()?;
        let result = self.ring.wait(None)?;
        self.completed(result).map(drop)
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        self.queue_read()?;
        let result = self.ring.wait(Some(timeout))?;
        self.completed(result).map(Woken::when)
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        if !self.reading {
            self.queue_read()?;
            self.ring.submit()?;
        }
        let result = self.ring.look()?;
        self.completed(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_of_two_directions_share_no_pair_of_cache_lines() {
        assert!(align_of::<Sum>() >= 128 && size_of::<Sum>() >= 128);
    }
}
