// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading the clock through the vDSO: a call that stays in user mode
//! where the clock source allows.

use super::alone::calls;
use super::{Explanation, Form, Operation, PLAIN};
use doorbell_machine::clock::monotonic_ns;

pub(super) const OPERATION: Operation = Operation {
    name: "clock-read",
    form: Form::alone("call", 5000),
    explanation: Explanation {
        summary: "clock_gettime(CLOCK_MONOTONIC) through the vDSO",
        how: "Reads the monotonic clock in a loop.",
        kernel: "Nothing where the clock source is the time-stamp counter: the vDSO computes \
            in user mode. With another clock source each reading is a system call, and this \
            row is as dear as `getppid`.",
        limits: "Percentiles are those of batch averages.",
        sources: &["vdso(7)", "/sys/devices/system/clocksource/clocksource0/current_clocksource"],
    },
    open: |_, _| {
        calls(|| {
            std::hint::black_box(monotonic_ns());
        })
    },
    ..PLAIN
};
