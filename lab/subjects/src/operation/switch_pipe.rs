// SPDX-License-Identifier: MIT OR Apache-2.0
//! The switch by pipe: an integer there and back.

use super::exchange::{End, exchange};
use super::pipes::{PipeEnd, Pipes};
use super::{Explanation, Fault, Form, Operation, PLAIN};

pub(super) const OPERATION: Operation = Operation {
    name: "switch-pipe",
    form: Form::two_sides("round", 1),
    explanation: Explanation {
        summary: "switch by two pipes, a 4-byte integer there and back",
        how: "Each side writes an integer into one pipe and reads one from the other. A round \
            is there and back.",
        kernel: "write copies into the pipe's page and wakes the reader; read on an empty pipe \
            sleeps. On one core the wake-up takes effect when the writer sleeps in its own \
            read, or at once if the scheduler lets the woken task preempt; on two cores it is \
            an interrupt and an exit from idle.",
        limits: "A round is two switches and four calls; the figure per switch is the window \
            divided by the switches counted, calls included.",
        sources: &["`perf bench sched pipe`", "pipe(7)"],
    },
    open: |_, _| {
        let pipes = Pipes::open()?;
        exchange(move |role| pipes.end(role))
    },
    ..PLAIN
};

impl End for PipeEnd {
    #[inline]
    fn give(&mut self) -> Result<(), Fault> {
        self.send(&[0; 4])
    }
    #[inline]
    fn take(&mut self) -> Result<(), Fault> {
        self.receive(&mut [0; 4])
    }
}
