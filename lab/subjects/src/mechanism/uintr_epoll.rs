// SPDX-License-Identifier: MIT OR Apache-2.0
//! SENDUIPI to a vector without a handler, in an epoll set.

use std::marker::PhantomData;
use std::os::fd::OwnedFd;

use user_interrupts::{Polled, Style};

use super::descriptor::{Reads, again};
use super::epoll::EpollWaiter;
use super::eventfd::EventfdRead;
use super::user_interrupt::{ByHardware, Interrupter, Means, probe, start};
use super::{Explanation, Link, Mechanism, OpenError, Site, Unavailable};

pub(crate) struct UintrEpoll;

/// The vector's descriptor; its receiver is of the process that opened the link.
pub(crate) struct PolledLink<M>(OwnedFd, PhantomData<M>);

impl Mechanism for UintrEpoll {
    type Link = PolledLink<ByHardware>;
    const NAME: &'static str = "uintr-epoll";
    const COALESCES: bool = true;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "SENDUIPI to a vector in an epoll set, then read",
        how: "The vector belongs to a receiver without a handler (UINTR_POLLED), and its \
            descriptor is what an eventfd is, but that the notifier rings it with SENDUIPI. \
            The waiter sleeps in epoll_wait(2) on a set that holds it, level triggered, and \
            reads it, which takes the count.",
        kernel: "While somebody may be queued the receiver is armed: SENDUIPI interrupts the CPU \
            where it was armed, whose handler counts the request and queues an irq_work, and that \
            wakes the queue, outside of whatever the interrupt met. From there on as an eventfd.",
        limits: "For a sleeper it is dearer than an eventfd in instructions \
            (uintr/driver/README.md), by its second step out of the interrupt; what it saves \
            is the sender's system call. A count is of what was noticed: posts that meet \
            before anybody looks are one.",
        sources: &[
            "uintr/driver/README.md, Receivers without a handler; uintr/driver/poll.c",
            "uintr/model/src/model/polled.rs",
            "epoll(7), eventfd(2)",
        ],
    };
}

impl<M: Means> Link for PolledLink<M> {
    type Notifier = Interrupter;
    // Eight bytes are read, as from an eventfd.
    type Waiter = EpollWaiter<EventfdRead>;
    fn available() -> Result<(), Unavailable> {
        probe::<M>()
    }
    fn open(_: &Site) -> Result<Self, OpenError> {
        start::<M>()?;
        Polled::new(Style::default())
            .map(|polled| Self(polled.into(), PhantomData))
            .map_err(OpenError::of("uintr_poll_fd"))
    }
    fn waiter(&self) -> Result<Self::Waiter, OpenError> {
        EpollWaiter::of(again(&self.0)?)
    }
    fn notifier(&self) -> Result<Interrupter, OpenError> {
        Interrupter::of(&self.0)
    }
}
