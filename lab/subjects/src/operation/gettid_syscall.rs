// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gettid` by the C library's `syscall()`, as many a benchmark makes it.

use super::alone::calls;
use super::{Explanation, Form, Operation, PLAIN};

pub(super) const OPERATION: Operation = Operation {
    name: "gettid-syscall",
    form: Form::alone("call", 1000),
    explanation: Explanation {
        summary: "gettid through the C library's syscall()",
        how: "Calls syscall(SYS_gettid) of the C library in a loop.",
        kernel: "As gettid. Beside it, it shows what the function takes that moves seven arguments \
            into their registers, looks at the result and may set errno.",
        limits: "Percentiles are those of batch averages.",
        sources: &["syscall(2)", "tsuna/contextswitch, timesyscall"],
    },
    open: |_, _| {
        calls(|| {
            // SAFETY: takes no argument and changes nothing.
            std::hint::black_box(unsafe { libc::syscall(libc::SYS_gettid) });
        })
    },
    ..PLAIN
};
