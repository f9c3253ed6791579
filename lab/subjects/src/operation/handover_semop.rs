// SPDX-License-Identifier: MIT OR Apache-2.0
//! rt-tests' `svsematest`: a System V semaphore handed over.

use super::handover::{Handover, OneWay};
use super::semaphore_set::SemaphoreSet;
use super::{Explanation, Fault, Form, Operation, PLAIN};

/// The semaphore that the receiver waits on.
const SENDERS: u16 = 0;
/// The semaphore that tells the sender that the receiver has taken.
const RECEIVERS: u16 = 1;
/// The semaphore that lets the sender go on. The tool raises the first one
/// again; done so here, a receiver whose sender was held up for longer
/// than its pause took that itself, for a hand-over that never was.
const TURNS: u16 = 2;

pub(super) const OPERATION: Operation = Operation {
    name: "handover-semop",
    form: Form::two_sides("hand-over", 1),
    explanation: Explanation {
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
    },
    usual: false,
    open: |site, _| Ok(Box::new(OneWay(SemaphoreSet::make(site, 3)?))),
    ..PLAIN
};

impl Handover for SemaphoreSet {
    #[inline]
    fn release(&self) -> Result<(), Fault> {
        self.change(SENDERS, 1, false)
    }
    #[inline]
    fn turn(&self) -> Result<(), Fault> {
        self.change(RECEIVERS, -1, false)?;
        self.change(TURNS, -1, false)
    }
    #[inline]
    fn acquire(&self) -> Result<(), Fault> {
        self.change(SENDERS, -1, false)
    }
    #[inline]
    fn note(&self) -> Result<(), Fault> {
        self.change(RECEIVERS, 1, false)
    }
    #[inline]
    fn allow(&self) -> Result<(), Fault> {
        self.change(TURNS, 1, false)
    }
}
