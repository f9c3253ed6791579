// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gettid` by the C library's `syscall()`, as many a benchmark makes it.

use super::Operation;
use super::alone::{Alone, Bench, Solo};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_harness::side::{Side, SideError};
use doorbell_results::configuration::Configuration;

/// `syscall(SYS_gettid)`.
#[derive(Debug)]
pub(super) struct GettidSyscall;

impl Operation for GettidSyscall {
    fn name(&self) -> &'static str {
        "gettid-syscall"
    }
    fn two_sided(&self) -> bool {
        false
    }
    fn unit(&self) -> &'static str {
        "call"
    }
    fn batch(&self) -> u32 {
        1000
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "gettid through the C library's syscall()",
            how: "Calls syscall(SYS_gettid) of the C library in a loop.",
            kernel: "As gettid. Beside it, it shows what the function takes that moves seven arguments into their registers, looks \
                     at the result and may set errno.",
            limits: "Percentiles are those of batch averages.",
            sources: &["syscall(2)", "tsuna/contextswitch, timesyscall"],
        }
    }
    fn open(&self, _: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        Ok(Box::new(Solo(Self)))
    }
}

impl Alone for GettidSyscall {
    type Bench = Calls;
    fn set_up(&self, _: &Side) -> Result<Calls, SideError> {
        Ok(Calls)
    }
}

#[derive(Debug)]
pub(super) struct Calls;

impl Bench for Calls {
    fn run(&mut self, count: u32) -> Result<(), Fault> {
        for _ in 0..count {
            // SAFETY: takes no argument and changes nothing.
            std::hint::black_box(unsafe { libc::syscall(libc::SYS_gettid) });
        }
        Ok(())
    }
}
