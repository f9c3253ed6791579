// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bare system call, by `gettid`.

use super::system_call::SystemCall;
use crate::mechanism::Explanation;

/// `gettid`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gettid;

impl SystemCall for Gettid {
    const NAME: &'static str = "gettid";
    const EXPLANATION: Explanation = Explanation {
        summary: "system call that does next to nothing: gettid",
        how: "Calls gettid in a loop, by the bare instruction.",
        kernel: "Enters the kernel, reads the caller's own number, returns. Beside getppid it \
            shows how much of a \"bare system call\" is the call chosen.",
        limits: "Percentiles are those of batch averages. `gettid-syscall` is the same through the \
            C library's syscall().",
        sources: &["gettid(2)"],
    };
    #[inline]
    fn call() {
        std::hint::black_box(rustix::thread::gettid());
    }
}
