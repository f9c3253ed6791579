// SPDX-License-Identifier: MIT OR Apache-2.0
//! The switch by pipe: an integer there and back.

use super::exchange::{Duo, End, Exchange};
use super::pipes::{PipeEnd, Pipes};
use super::{Form, Operation};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_harness::role::Role;
use doorbell_harness::side::SideError;
use doorbell_results::configuration::Configuration;

/// Two pipes, 4 bytes.
#[derive(Debug)]
pub(super) struct SwitchPipe;

impl Operation for SwitchPipe {
    fn name(&self) -> &'static str {
        "switch-pipe"
    }
    fn form(&self) -> Form {
        Form::two_sides("round", 1)
    }
    fn explanation(&self) -> Explanation {
        Explanation {
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
        }
    }
    fn open(&self, _: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        Ok(Box::new(Duo(Integers(Pipes::open()?))))
    }
}

#[derive(Debug)]
struct Integers(Pipes);

impl Exchange for Integers {
    type End = PipeEnd;
    fn end(&self, role: Role) -> Result<PipeEnd, SideError> {
        self.0.end(role)
    }
}

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
