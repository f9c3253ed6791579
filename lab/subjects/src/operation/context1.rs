// SPDX-License-Identifier: MIT OR Apache-2.0
//! UnixBench's `context1`: an 8-byte counter through two pipes, checked by both sides.

use super::exchange::{End, exchange};
use super::figures::{figure, window};
use super::pipes::{PipeEnd, Pipes};
use super::{Explanation, Fault, Form, Operation, PLAIN};

pub(super) const OPERATION: Operation = Operation {
    name: "context1",
    form: Form::two_sides("round", 1),
    explanation: Explanation {
        summary: "the protocol of UnixBench context1: a checked 8-byte counter through two pipes",
        how: "Each side writes its counter into one pipe, reads the other's from the other \
            pipe and compares. A difference ends the trial.",
        kernel: "As switch-pipe.",
        limits: "UnixBench prints loops per second, one loop being a round trip of two switches; \
            it pins nobody, so its figure is that of one core or of two as the scheduler pleases.",
        sources: &["byte-unixbench, pgms/context1.c"],
    },
    open: |_, _| {
        let pipes = Pipes::open()?;
        exchange(move |role| Ok(Counter { pipes: pipes.end(role)?, given: 0, taken: 0 }))
    },
    classic: |record| {
        let (window, rounds) = window(record)?;
        let formula = format!("{rounds} round trips / {window} ns: loops per second (lps)");
        Some(figure("context1 as printed", rounds * 1e9 / window, "lps", formula))
    },
    ..PLAIN
};

/// One side's counters: of what it gave and of what it took.
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
