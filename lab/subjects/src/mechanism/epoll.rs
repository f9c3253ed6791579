// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the mechanisms share whose waiter sleeps in a set of epoll.

use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::deadline::{Deadline, relative};
use super::descriptor::{Descriptors, Reads, take_token};
use super::{Fault, OpenError, Unavailable, Waiter, Woken};

/// Descriptors whose reading end stands in a set.
pub(crate) trait InASet: Descriptors {
    /// Whether the event itself is the notification (`EPOLLET`), and nothing is read.
    const EDGE: bool = false;
    /// What the set is told beyond its member.
    fn prepare(_: &OwnedFd) -> Result<(), OpenError> {
        Ok(())
    }
}

/// The end that sleeps in a set with a single member, and reads.
pub(crate) struct EpollWaiter<D> {
    set: OwnedFd,
    member: OwnedFd,
    kind: PhantomData<D>,
}

impl<D: InASet> Reads for EpollWaiter<D> {
    fn of(member: OwnedFd) -> Result<Self, OpenError> {
        let set = epoll::create(CreateFlags::CLOEXEC).map_err(OpenError::of("epoll_create1"))?;
        let flags = if D::EDGE { EventFlags::IN | EventFlags::ET } else { EventFlags::IN };
        epoll::add(&set, &member, EventData::new_u64(0), flags)
            .map_err(OpenError::of("epoll_ctl(EPOLL_CTL_ADD)"))?;
        D::prepare(&set)?;
        Ok(Self { set, member, kind: PhantomData })
    }

    fn probe(&self) -> Result<(), Unavailable> {
        match self.sleep(Some(Duration::ZERO)) {
            Ok(_) => Ok(()),
            Err(fault) => Err(Unavailable::because(format!(
                "no timed wait on a set of epoll: {fault} (kernel 5.11 brought it)"
            ))),
        }
    }
}

impl<D: InASet> EpollWaiter<D> {
    /// Sleeps until the member has an event; false when the time ran out.
    #[inline]
    fn sleep(&self, timeout: Option<Duration>) -> Result<bool, Fault> {
        let deadline = timeout.map(Deadline::after);
        let mut rest = timeout.map(relative);
        loop {
            match self.sleep_once(rest.as_ref()) {
                Ok(events) => return Ok(events > 0),
                Err(Errno::INTR) => {
                    rest = deadline.map(|deadline| relative(deadline.rest().unwrap_or_default()));
                }
                Err(error) => return Err(Fault::new("epoll_pwait2", error)),
            }
        }
    }

    fn sleep_once(&self, timeout: Option<&Timespec>) -> Result<usize, Errno> {
        let none = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        epoll::wait(&self.set, &mut [none], timeout)
    }

    #[inline]
    fn sleep_then_read(&self, timeout: Option<Duration>) -> Result<bool, Fault> {
        let ready = self.sleep(timeout)?;
        if ready && !D::EDGE {
            take_token::<D>(&self.member)?;
        }
        Ok(ready)
    }
}

impl<D: InASet> Waiter for EpollWaiter<D> {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        self.sleep_then_read(None).map(drop)
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        self.sleep_then_read(Some(timeout)).map(Woken::when)
    }
}
