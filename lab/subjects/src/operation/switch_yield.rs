// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bare switch: two sides on one core that do nothing but give way.

use super::yields::Yields;
use super::{Explanation, Form, Operation, PLAIN};

pub(super) const OPERATION: Operation = Operation {
    name: "switch-yield",
    form: Form::two_sides("round", 1),
    explanation: Explanation {
        summary: "switch by sched_yield on both sides: no wake-up, the same-core primitive cost",
        how: "Both sides call sched_yield over and over. On one core a call returns after the \
            other side has run: a round is then two switches.",
        kernel: "sched_yield puts the caller behind and picks the next task: no sleep, no \
            wake-up, one switch.",
        limits: "The scheduler may pick the caller again (a fair scheduler does when the other \
            is owed less), and on two cores it always does: the switches counted tell, and no \
            figure per switch is made from a handful.",
        sources: &["sched_yield(2)", "Linux kernel/sched/fair.c, yield_task_fair"],
    },
    open: |_, _| Ok(Box::new(Yields)),
    ..PLAIN
};
