// SPDX-License-Identifier: MIT OR Apache-2.0
//! An eventfd in an epoll set, level triggered: how most event loops are woken.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::deadline::{Deadline, relative};
use super::descriptor::{Writer, again, take_token};
use super::eventfd::{self, EventfdRead};
use super::{Explanation, Fault, Link, Mechanism, OpenError, Site, Unavailable, Waiter, Woken};

/// The waiter sleeps in `epoll_wait(2)`, then reads.
#[derive(Debug)]
pub struct EventfdEpoll;

#[derive(Debug)]
pub struct EventfdEpollLink(OwnedFd);

/// The end that sleeps in the set, and reads.
#[derive(Debug)]
pub struct LevelWaiter {
    set: EpollSet,
    eventfd: OwnedFd,
}

/// An epoll set with a single member.
#[derive(Debug)]
pub(super) struct EpollSet(OwnedFd);

impl EpollSet {
    /// The set of `member` alone.
    pub(super) fn of(member: &OwnedFd, flags: EventFlags) -> Result<Self, OpenError> {
        let set = epoll::create(CreateFlags::CLOEXEC).map_err(OpenError::of("epoll_create1"))?;
        epoll::add(&set, member, EventData::new_u64(0), flags)
            .map_err(OpenError::of("epoll_ctl(EPOLL_CTL_ADD)"))?;
        Ok(Self(set))
    }

    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    /// Sleeps until the member has an event; false when the time ran out.
    #[inline]
    pub(super) fn wait(&self, timeout: Option<Duration>) -> Result<bool, Fault> {
        let deadline = timeout.map(Deadline::after);
        let mut rest = timeout.map(relative);
        loop {
            match self.wait_once(rest.as_ref()) {
                Ok(events) => return Ok(events > 0),
                Err(Errno::INTR) => {
                    rest = deadline.map(|deadline| relative(deadline.rest().unwrap_or_default()));
                }
                Err(error) => return Err(Fault::new("epoll_pwait2", error)),
            }
        }
    }

    /// Whether the kernel has the timed wait.
    pub(super) fn probe(&self) -> Result<(), Unavailable> {
        match self.wait(Some(Duration::ZERO)) {
            Ok(_) => Ok(()),
            Err(fault) => Err(Unavailable::because(format!(
                "no timed wait on a set of epoll: {fault} (kernel 5.11 brought it)"
            ))),
        }
    }

    fn wait_once(&self, timeout: Option<&Timespec>) -> Result<usize, Errno> {
        let none = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        epoll::wait(&self.0, &mut [none], timeout)
    }
}

/// Whether the kernel gives an eventfd and takes it into an epoll set
/// that can be waited for as long as one wants.
pub(super) fn probe() -> Result<(), Unavailable> {
    let member = eventfd::fresh().map_err(|error| Unavailable::because(error.to_string()))?;
    let set =
        EpollSet::of(&member, EventFlags::IN).map_err(|error| Unavailable::because(error.to_string()))?;
    set.probe()
}

impl Mechanism for EventfdEpoll {
    type Link = EventfdEpollLink;
    const NAME: &'static str = "eventfd-epoll";
    const COALESCES: bool = true;
    const DESCRIPTOR: bool = true;

    fn explanation() -> Explanation {
        Explanation {
            summary: "eventfd in an epoll set, level triggered, then read",
            how: "The notifier writes 1. The waiter sleeps in epoll_wait(2) on a set that holds \
                the eventfd and, once told that it is readable, reads it, which sets the sum to \
                zero.",
            kernel: "The set hangs on the eventfd's wait queue for good. The write calls its \
                callback, which puts the eventfd on the ready list and wakes the sleeper; \
                epoll_wait asks the eventfd again, reports it and, being level triggered, keeps it \
                on the list until a later call finds it unreadable.",
            limits: "Two system calls a wake-up, and a look at the eventfd more per epoll_wait \
                than edge triggered. Notifications before a read merge. The timed wait is \
                epoll_pwait2(2) (kernel 5.11; before that milliseconds only).",
            sources: &[
                "epoll(7), epoll_wait(2), eventfd(2)",
                "Linux fs/eventpoll.c, ep_poll_callback and ep_send_events",
            ],
        }
    }

    fn available() -> Result<(), Unavailable> {
        probe()
    }
}

impl Link for EventfdEpollLink {
    type Notifier = Writer<EventfdRead>;
    type Waiter = LevelWaiter;
    fn open(_: &Site) -> Result<Self, OpenError> {
        eventfd::fresh().map(Self)
    }
    fn waiter(&self) -> Result<LevelWaiter, OpenError> {
        let eventfd = again(&self.0)?;
        Ok(LevelWaiter { set: EpollSet::of(&eventfd, EventFlags::IN)?, eventfd })
    }
    fn notifier(&self) -> Result<Writer<EventfdRead>, OpenError> {
        again(&self.0).map(Writer::new)
    }
}

impl LevelWaiter {
    #[inline]
    fn wait_then_read(&mut self, timeout: Option<Duration>) -> Result<bool, Fault> {
        let ready = self.set.wait(timeout)?;
        if ready {
            take_token::<EventfdRead>(&self.eventfd)?;
        }
        Ok(ready)
    }
}

impl Waiter for LevelWaiter {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        self.wait_then_read(None).map(drop)
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        self.wait_then_read(Some(timeout)).map(Woken::when)
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        self.wait_then_read(Some(Duration::ZERO))
    }
}
