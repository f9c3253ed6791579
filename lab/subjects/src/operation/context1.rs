// SPDX-License-Identifier: MIT OR Apache-2.0
//! UnixBench's `context1`: an 8-byte counter through two pipes, checked by both sides.

use super::exchange::{Duo, End, Exchange};
use super::figures::{figure, window};
use super::pipes::{PipeEnd, Pipes};
use super::{Form, Operation};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_harness::role::Role;
use doorbell_harness::side::SideError;
use doorbell_results::configuration::Configuration;
use doorbell_results::record::{Figure, Record};

/// Two pipes, a counter of 8 bytes.
#[derive(Debug)]
pub(super) struct Context1;

impl Operation for Context1 {
    fn name(&self) -> &'static str {
        "context1"
    }
    fn form(&self) -> Form {
        Form::two_sides("round", 1)
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "the protocol of UnixBench context1: a checked 8-byte counter through two pipes",
            how: "Each side writes its counter into one pipe, reads the other's from the other \
                pipe and compares. A difference ends the trial.",
            kernel: "As switch-pipe.",
            limits: "UnixBench prints loops per second, one loop being a round trip of two \
                switches; it pins nobody, so its figure is that of one core or of two as the \
                scheduler pleases.",
            sources: &["byte-unixbench, pgms/context1.c"],
        }
    }
    fn open(&self, _: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        Ok(Box::new(Duo(Counters(Pipes::open()?))))
    }
    fn classic(&self, record: &Record) -> Option<Figure> {
        let (window, rounds) = window(record)?;
        let formula = format!("{rounds} round trips / {window} ns: loops per second (lps)");
        Some(figure("context1 as printed", rounds * 1e9 / window, "lps", formula))
    }
}

#[derive(Debug)]
struct Counters(Pipes);

impl Exchange for Counters {
    type End = Counter;
    fn end(&self, role: Role) -> Result<Counter, SideError> {
        Ok(Counter { pipes: self.0.end(role)?, given: 0, taken: 0 })
    }
}

/// One side's counters: of what it gave and of what it took.
#[derive(Debug)]
struct Counter {
    pipes: PipeEnd,
    given: u64,
    taken: u64,
}

impl End for Counter {
    #[inline]
    fn give(&mut self) -> Result<(), Fault> {
        self.pipes.send(&self.given.to_ne_bytes())?;
        self.given += 1;
        Ok(())
    }

    #[inline]
    fn take(&mut self) -> Result<(), Fault> {
        let mut bytes = [0; 8];
        self.pipes.receive(&mut bytes)?;
        let came = u64::from_ne_bytes(bytes);
        if came != self.taken {
            return Err(Fault::new("read", format!("counter {came} came, {} was due", self.taken)));
        }
        self.taken += 1;
        Ok(())
    }
}
