// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bare system call, by `gettid`.

use super::alone::calls;
use super::{Explanation, Form, Operation, PLAIN};

pub(super) const OPERATION: Operation = Operation {
    name: "gettid",
    form: Form::alone("call", 1000),
    explanation: Explanation {
        summary: "system call that does next to nothing: gettid",
        how: "Calls gettid in a loop, by the bare instruction.",
        kernel: "Enters the kernel, reads the caller's own number, returns. Beside getppid it \
            shows how much of a \"bare system call\" is the call chosen.",
        limits: "Percentiles are those of batch averages. `gettid-syscall` is the same through the \
            C library's syscall().",
        sources: &["gettid(2)"],
    },
    open: |_, _| {
        calls(|| {
            std::hint::black_box(rustix::thread::gettid());
        })
    },
    ..PLAIN
};
