// SPDX-License-Identifier: MIT OR Apache-2.0
//! An eventfd, waited for with `poll(2)` as one of the descriptors of an event loop would be.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;

use super::descriptor::{DescriptorLink, Reads, readable, take_token};
use super::eventfd::EventfdRead;
use super::{Explanation, Fault, Mechanism, OpenError, Waiter, Woken};

pub(crate) struct EventfdPoll;

pub(crate) struct Poller(OwnedFd);

impl Mechanism for EventfdPoll {
    type Link = DescriptorLink<EventfdRead, Poller>;
    const NAME: &'static str = "eventfd-poll";
    const COALESCES: bool = true;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "eventfd, waited for with poll(2) and then read",
        how: "The notifier writes 1. The waiter calls poll(2) without a time limit and, once \
            the eventfd is readable, read(2), which sets the sum to zero.",
        kernel: "poll puts the task on the eventfd's wait queue, sleeps, and takes it off again on \
            every call; the read is a second system call. The write is the same as for eventfd.",
        limits: "Two system calls a wake-up where reading alone takes one, and a cost that \
            grows with the number of descriptors polled. Notifications before a read merge. \
            The timed wait is the same call, ppoll(2), with a time.",
        sources: &["eventfd(2), poll(2)", "Linux fs/select.c, do_poll; fs/eventfd.c, eventfd_poll"],
    };
}

impl Reads for Poller {
    fn of(fd: OwnedFd) -> Result<Self, OpenError> {
        Ok(Self(fd))
    }
}

impl Waiter for Poller {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        retry_on_intr(|| poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None))
            .map_err(Fault::of("ppoll"))?;
        take_token::<EventfdRead>(&self.0).map(drop)
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        if !readable(&self.0, timeout)? {
            return Ok(Woken::TimedOut);
        }
        take_token::<EventfdRead>(&self.0)?;
        Ok(Woken::Notified)
    }
}
