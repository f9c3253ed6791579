// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol of tsuna/contextswitch's `timetctxsw2`: two threads
//! that yield, and a divisor of four.

use super::figures::{figure, window};
use super::side_by_side::Pair;
use super::switch_yield::Yields;
use super::{Form, Operation};
use crate::mechanism::{Contexts, Explanation, Links, OpenError, Site};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::{Figure, Record};

/// `sched_yield` in two threads.
#[derive(Debug)]
pub(super) struct Timetctxsw2;

impl Operation for Timetctxsw2 {
    fn name(&self) -> &'static str {
        "timetctxsw2"
    }
    fn form(&self) -> Form {
        Form::two_sides("round", 1)
    }
    fn joins(&self, contexts: Contexts) -> bool {
        contexts == Contexts::Threads
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "the protocol of timetctxsw2: two threads that yield",
            how: "As switch-yield between threads; the tool asks for SCHED_FIFO and goes on \
                without if refused.",
            kernel: "As switch-yield.",
            limits: "The tool divides by four switches per loop of one thread. On one core there \
                are two; on two cores hardly any: it then prints a \"switch\" of 200 ns made of \
                none.",
            sources: &["tsuna/contextswitch, timetctxsw2.c"],
        }
    }
    fn open(&self, _: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        Ok(Box::new(Pair(Yields)))
    }
    fn classic(&self, record: &Record) -> Option<Figure> {
        let (window, rounds) = window(record)?;
        let formula = format!("{window} ns / (4 × {rounds} loops), assumed");
        Some(figure("timetctxsw2 as printed", window / (4.0 * rounds), "ns", formula))
    }
}
