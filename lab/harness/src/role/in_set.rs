// SPDX-License-Identifier: MIT OR Apache-2.0
//! A waiter in an event loop: it sleeps in an epoll set beside descriptors at which nothing
//! happens, then takes what came.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

use crate::mechanism::{Fault, Waiter, Woken};
use crate::side::SideError;
use crate::site::OpenError;

/// Events taken from the set at once; there is never more than one.
const EVENTS: usize = 8;

/// A waiter and the set that it sleeps in.
pub(super) struct InSet<W> {
    inner: W,
    set: OwnedFd,
    /// Open as long as the set is asked.
    _beside: Vec<OwnedFd>,
}

impl<W: Waiter> InSet<W> {
    /// `inner` beside so many idle descriptors.
    pub(super) fn of(inner: W, beside: u32) -> Result<Self, SideError> {
        let set = epoll::create(CreateFlags::CLOEXEC).map_err(OpenError::of("epoll_create1"))?;
        let add = |member: std::os::fd::BorrowedFd, number| {
            epoll::add(&set, member, EventData::new_u64(number), EventFlags::IN)
                .map_err(OpenError::of("epoll_ctl(EPOLL_CTL_ADD)"))
        };
        let Some(own) = inner.descriptor() else {
            let cause = "the waiting end of this mechanism stands in no set with others";
            return Err(Fault::new("epoll_ctl", cause).into());
        };
        add(own, 0)?;
        let mut idle = Vec::new();
        for number in 1..=beside {
            let member = eventfd(0, EventfdFlags::CLOEXEC).map_err(OpenError::of("eventfd"))?;
            add(std::os::fd::AsFd::as_fd(&member), number.into())?;
            idle.push(member);
        }
        Ok(Self { inner, set, _beside: idle })
    }

    /// Whether something came until `timeout` ran out; waits for ever without one.
    #[inline]
    fn ready(&self, timeout: Option<Duration>) -> Result<bool, Fault> {
        let ends = timeout.filter(|timeout| !timeout.is_zero()).map(|timeout| Instant::now() + timeout);
        let mut rest = timeout;
        loop {
            let none = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
            let rest_of = rest.map(|rest| Timespec {
                tv_sec: i64::try_from(rest.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: rest.subsec_nanos().into(),
            });
            match epoll::wait(&self.set, &mut [none; EVENTS], rest_of.as_ref()) {
                Ok(events) => return Ok(events > 0),
                Err(Errno::INTR) => {
                    rest = ends.map(|ends| ends.saturating_duration_since(Instant::now())).or(timeout);
                }
                Err(error) => return Err(Fault::new("epoll_pwait2", error)),
            }
        }
    }

    #[inline]
    fn take(&mut self, timeout: Option<Duration>) -> Result<bool, Fault> {
        let ready = self.ready(timeout)?;
        if ready {
            // At once: the set says that there is something.
            self.inner.wait()?;
        }
        Ok(ready)
    }
}

impl<W: Waiter> Waiter for InSet<W> {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        while !self.take(None)? {}
        Ok(())
    }
    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        self.take(Some(timeout)).map(Woken::when)
    }
    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        self.take(Some(Duration::ZERO))
    }
    fn number(&self) -> Option<u32> {
        self.inner.number()
    }
    fn requests(&self) -> Option<u64> {
        self.inner.requests()
    }
}
