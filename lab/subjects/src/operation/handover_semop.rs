// SPDX-License-Identifier: MIT OR Apache-2.0
//! rt-tests' `svsematest`: a System V semaphore handed over.

use super::handover::{Handover, OneWay, Receiver, Sender};
use super::semaphore_set::SemaphoreSet;
use super::{Form, Operation};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_harness::side::SideError;
use doorbell_results::configuration::Configuration;

/// A set of three semaphores.
#[derive(Debug)]
pub(super) struct HandoverSemop;

/// The semaphore that the receiver waits on.
const SENDERS: u16 = 0;
/// The semaphore that tells the sender that the receiver has taken.
const RECEIVERS: u16 = 1;
/// The semaphore that lets the sender go on. The tool raises the first one
/// again; done so here, a receiver whose sender was held up for longer
/// than its pause took that itself, for a hand-over that never was.
const TURNS: u16 = 2;

impl Operation for HandoverSemop {
    fn name(&self) -> &'static str {
        "handover-semop"
    }
    fn form(&self) -> Form {
        Form::two_sides("hand-over", 1)
    }
    fn usual(&self) -> bool {
        false
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "the protocol of svsematest: a System V semaphore raised by one side, awaited \
                by the other, one way",
            how: "The sender stamps and raises the first semaphore; the receiver, asleep in semop, \
                stamps, raises the second, sleeps 200 us and raises a third, for which the sender \
                waits in turn.",
            kernel: "semop under the set's lock; the waiter's operation is completed by the waker.",
            limits: "Run it with --scheduler fifo and on one core as the tool does; its -a pins \
                both sides to one CPU. The tool raises the first semaphore again where this raises \
                a third, with as many calls.",
            sources: &["rt-tests, svsematest.c"],
        }
    }
    fn open(&self, site: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        Ok(Box::new(OneWay(Set(SemaphoreSet::make(site, 3)?))))
    }
}

#[derive(Debug, Clone, Copy)]
struct Set(SemaphoreSet);

impl Handover for Set {
    type Sender = Set;
    type Receiver = Set;
    fn sender(&self) -> Result<Set, SideError> {
        Ok(*self)
    }
    fn receiver(&self) -> Result<Set, SideError> {
        Ok(*self)
    }
}

impl Sender for Set {
    #[inline]
    fn release(&mut self) -> Result<(), Fault> {
        self.0.change(SENDERS, 1, false)
    }
    #[inline]
    fn turn(&mut self) -> Result<(), Fault> {
        self.0.change(RECEIVERS, -1, false)?;
        self.0.change(TURNS, -1, false)
    }
}

impl Receiver for Set {
    #[inline]
    fn acquire(&mut self) -> Result<(), Fault> {
        self.0.change(SENDERS, -1, false)
    }
    #[inline]
    fn note(&mut self) -> Result<(), Fault> {
        self.0.change(RECEIVERS, 1, false)
    }
    #[inline]
    fn allow(&mut self) -> Result<(), Fault> {
        self.0.change(TURNS, 1, false)
    }
}
