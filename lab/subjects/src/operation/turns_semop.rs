// SPDX-License-Identifier: MIT OR Apache-2.0
//! stress-ng's `--switch-method sem-sysv`: one semaphore, raised and lowered by both.

use super::figures::assumed;
use super::semaphore_set::SemaphoreSet;
use super::stream::{Stream, Turns};
use super::{Explanation, Fault, Form, Operation, PLAIN};

pub(super) const OPERATION: Operation = Operation {
    name: "turns-semop",
    form: Form::two_sides("round", 100),
    explanation: Explanation {
        summary: "the protocol of stress-ng --switch-method sem-sysv: one semaphore raised and \
            lowered by both sides",
        how: "The timed side raises the semaphore and lowers it again, the other lowers and \
            raises it; whoever finds it zero sleeps.",
        kernel: "semop with SEM_UNDO. A side that takes back what it raised before the other \
            woke does not switch at all.",
        limits: "stress-ng divides by two switches a round; the kernel often makes far fewer, \
            which is why its figure is so low.",
        sources: &["stress-ng, stress-switch.c"],
    },
    usual: false,
    open: |site, _| Ok(Box::new(Turns(SemaphoreSet::make(site, 1)?))),
    classic: |record| assumed(record, "stress-ng as printed", 2, "rounds"),
    ..PLAIN
};

impl Stream for SemaphoreSet {
    #[inline]
    fn lead(&self) -> Result<(), Fault> {
        // Both with SEM_UNDO, as the tool has it: one alone would
        // count up the undo value until it overflows.
        self.change(0, 1, true)?;
        self.change(0, -1, true)
    }

    #[inline]
    fn follow(&self) -> Result<(), Fault> {
        self.change(0, -1, true)?;
        self.change(0, 1, true)
    }

    fn free(&self) -> Result<(), Fault> {
        self.change(0, 1, true)
    }
}
