// SPDX-License-Identifier: MIT OR Apache-2.0
//! stress-ng's `--switch-method sem-sysv`: one semaphore, raised and lowered by both.

use super::figures::{figure, window};
use super::semaphore_set::SemaphoreSet;
use super::stream::{Stream, Turns};
use super::{Form, Operation};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::{Figure, Record};

/// A System V semaphore that both sides raise and lower.
#[derive(Debug)]
pub(super) struct TurnsSemop;

impl Operation for TurnsSemop {
    fn name(&self) -> &'static str {
        "turns-semop"
    }
    fn form(&self) -> Form {
        Form::two_sides("round", 100)
    }
    fn usual(&self) -> bool {
        false
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "the protocol of stress-ng --switch-method sem-sysv: one semaphore raised and \
                lowered by both sides",
            how: "The timed side raises the semaphore and lowers it again, the other lowers and \
                raises it; whoever finds it zero sleeps.",
            kernel: "semop with SEM_UNDO. A side that takes back what it raised before the other \
                woke does not switch at all.",
            limits: "stress-ng divides by two switches a round; the kernel often makes far fewer, \
                which is why its figure is so low.",
            sources: &["stress-ng, stress-switch.c"],
        }
    }
    fn open(&self, site: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        Ok(Box::new(Turns(One(SemaphoreSet::make(site, 1)?))))
    }
    fn classic(&self, record: &Record) -> Option<Figure> {
        let (window, rounds) = window(record)?;
        let formula = format!("{window} ns / (2 × {rounds} rounds), assumed");
        Some(figure("stress-ng as printed", window / (2.0 * rounds), "ns", formula))
    }
}

#[derive(Debug)]
struct One(SemaphoreSet);

impl Stream for One {
    #[inline]
    fn lead(&self) -> Result<(), Fault> {
        // Both with SEM_UNDO, as the tool has it: one alone would
        // count up the undo value until it overflows.
        self.0.change(0, 1, true)?;
        self.0.change(0, -1, true)
    }

    #[inline]
    fn follow(&self) -> Result<(), Fault> {
        self.0.change(0, -1, true)?;
        self.0.change(0, 1, true)
    }

    fn free(&self) -> Result<(), Fault> {
        self.0.change(0, 1, true)
    }
}
