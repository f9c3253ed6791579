// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bare system call, by `getppid`.

use super::alone::calls;
use super::{Explanation, Form, Operation, PLAIN};

pub(super) const OPERATION: Operation = Operation {
    name: "getppid",
    form: Form::alone("call", 1000),
    explanation: Explanation {
        summary: "system call that does next to nothing: getppid",
        how: "Calls getppid in a loop; the C library does not cache it.",
        kernel: "Enters the kernel, reads one field of the parent under RCU, returns: the mode \
            switch and what the mitigations add to it.",
        limits: "Percentiles are those of batch averages: a single call is too short to be timed alone.",
        sources: &["`perf bench syscall basic`", "will-it-scale, getppid1"],
    },
    open: |_, _| {
        calls(|| {
            std::hint::black_box(rustix::process::getppid());
        })
    },
    ..PLAIN
};
