// SPDX-License-Identifier: MIT OR Apache-2.0
//! SENDUIPI to a vector without a handler, in an epoll set.

use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::epoll::EventFlags;
use user_interrupts::{Polled, Style};

use super::descriptor::{again, take_token};
use super::eventfd::EventfdRead;
use super::eventfd_epoll::EpollSet;
use super::user_interrupt::{ByHardware, Interrupter, Means, probe, start};
use super::{Explanation, Fault, Link, Mechanism, OpenError, Site, Unavailable, Waiter, Woken};

/// The waiter sleeps in `epoll_wait(2)`, then reads.
#[derive(Debug)]
pub struct UintrEpoll;

/// The vector's descriptor; its receiver is of the process that opened the link.
#[derive(Debug)]
pub struct PolledLink<M>(OwnedFd, PhantomData<M>);

/// The end that sleeps in the set, and reads.
#[derive(Debug)]
pub struct PolledWaiter {
    set: EpollSet,
    vector: OwnedFd,
}

impl Mechanism for UintrEpoll {
    type Link = PolledLink<ByHardware>;
    const NAME: &'static str = "uintr-epoll";
    const COALESCES: bool = true;
    const DESCRIPTOR: bool = true;

    fn explanation() -> Explanation {
        Explanation {
            summary: "SENDUIPI to a vector in an epoll set, then read",
            how: "The vector belongs to a receiver without a handler (UINTR_POLLED), and its \
                descriptor is what an eventfd is, but that the notifier rings it with SENDUIPI. \
                The waiter sleeps in epoll_wait(2) on a set that holds it, level triggered, and \
                reads it, which takes the count.",
            kernel: "While somebody may be queued the receiver is armed: SENDUIPI interrupts the \
                CPU where it was armed, whose handler counts the request and queues an irq_work, \
                and that wakes the queue, outside of whatever the interrupt met. From there on as \
                an eventfd.",
            limits: "For a sleeper it is dearer than an eventfd in instructions \
                (uintr/driver/README.md), by its second step out of the interrupt; what it saves \
                is the sender's system call. A count is of what was noticed: posts that meet \
                before anybody looks are one.",
            sources: &[
                "uintr/driver/README.md, Receivers without a handler; uintr/driver/poll.c",
                "uintr/model/src/model/polled.rs",
                "epoll(7), eventfd(2)",
            ],
        }
    }

    fn available() -> Result<(), Unavailable> {
        probe::<ByHardware>()
    }
}

impl<M: Means> Link for PolledLink<M> {
    type Notifier = Interrupter;
    type Waiter = PolledWaiter;
    fn open(_: &Site) -> Result<Self, OpenError> {
        start::<M>()?;
        Polled::new(Style::default())
            .map(|polled| Self(polled.into(), PhantomData))
            .map_err(OpenError::of("uintr_poll_fd"))
    }
    fn waiter(&self) -> Result<PolledWaiter, OpenError> {
        let vector = again(&self.0)?;
        Ok(PolledWaiter { set: EpollSet::of(&vector, EventFlags::IN)?, vector })
    }
    fn notifier(&self) -> Result<Interrupter, OpenError> {
        Interrupter::of(&self.0)
    }
}

impl PolledWaiter {
    #[inline]
    fn wait_then_read(&mut self, timeout: Option<Duration>) -> Result<bool, Fault> {
        let ready = self.set.wait(timeout)?;
        if ready {
            // Eight bytes, as from an eventfd.
            take_token::<EventfdRead>(&self.vector)?;
        }
        Ok(ready)
    }
}

impl Waiter for PolledWaiter {
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
