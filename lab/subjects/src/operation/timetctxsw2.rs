// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol of tsuna/contextswitch's `timetctxsw2`: two threads
//! that yield, and a divisor of four.

use super::figures::assumed;
use super::yields::Yields;
use super::{Contexts, Explanation, Form, Operation, PLAIN};

pub(super) const OPERATION: Operation = Operation {
    name: "timetctxsw2",
    form: Form::two_sides("round", 1),
    explanation: Explanation {
        summary: "the protocol of timetctxsw2: two threads that yield",
        how: "As switch-yield between threads; the tool asks for SCHED_FIFO and goes on \
            without if refused.",
        kernel: "As switch-yield.",
        limits: "The tool divides by four switches per loop of one thread. On one core there are \
            two; on two cores hardly any: it then prints a \"switch\" of 200 ns made of none.",
        sources: &["tsuna/contextswitch, timetctxsw2.c"],
    },
    only: Some(Contexts::Threads),
    open: |_, _| Ok(Box::new(Yields)),
    classic: |record| assumed(record, "timetctxsw2 as printed", 4, "loops"),
    ..PLAIN
};
