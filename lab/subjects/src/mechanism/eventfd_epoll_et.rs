// SPDX-License-Identifier: MIT OR Apache-2.0
//! An eventfd in an epoll set, edge triggered: the event itself is
//! the notification, and nothing is read.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::epoll::EventFlags;

use super::descriptor::{Writer, again};
use super::eventfd::{self, EventfdRead};
use super::eventfd_epoll::{self, EpollSet};
use super::{Explanation, Fault, Link, Mechanism, OpenError, Site, Unavailable, Waiter, Woken};

/// The waiter sleeps in `epoll_wait(2)` and is done.
#[derive(Debug)]
pub struct EventfdEpollEt;

#[derive(Debug)]
pub struct EdgeLink(OwnedFd);

/// The end that sleeps in the set.
#[derive(Debug)]
pub struct EdgeWaiter(EpollSet);

impl Mechanism for EventfdEpollEt {
    type Link = EdgeLink;
    const NAME: &'static str = "eventfd-epoll-et";
    const COALESCES: bool = true;
    const DESCRIPTOR: bool = true;

    fn explanation() -> Explanation {
        Explanation {
            summary: "eventfd in an epoll set, edge triggered and never read",
            how: "The notifier writes 1. The waiter sleeps in epoll_wait(2) on a set that holds \
                the eventfd with EPOLLET: every write is an event, whether the sum was read or \
                not, so the read is left out and the sum grows.",
            kernel: "As eventfd-epoll, but the eventfd leaves the ready list as soon as it is reported.",
            limits: "One system call a wake-up. The sum reaches 2^64-2 after more notifications \
                than a machine can make in a century; a write there would block. Two events before \
                a wait are one. The timed wait is epoll_pwait2(2) (kernel 5.11; before that \
                milliseconds only).",
            sources: &[
                "epoll(7), \"Level-triggered and edge-triggered\"",
                "Linux fs/eventpoll.c, ep_send_events",
            ],
        }
    }

    fn available() -> Result<(), Unavailable> {
        eventfd_epoll::probe()
    }
}

impl Link for EdgeLink {
    type Notifier = Writer<EventfdRead>;
    type Waiter = EdgeWaiter;
    fn open(_: &Site) -> Result<Self, OpenError> {
        eventfd::fresh().map(Self)
    }
    fn waiter(&self) -> Result<EdgeWaiter, OpenError> {
        EpollSet::of(&self.0, EventFlags::IN | EventFlags::ET).map(EdgeWaiter)
    }
    fn notifier(&self) -> Result<Writer<EventfdRead>, OpenError> {
        again(&self.0).map(Writer::new)
    }
}

impl Waiter for EdgeWaiter {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        self.0.wait(None).map(drop)
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        self.0.wait(Some(timeout)).map(Woken::when)
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        self.0.wait(Some(Duration::ZERO))
    }
}
