// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bare system call, by `gettid`.

use super::Operation;
use super::alone::{Alone, Bench, Solo};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_harness::side::{Side, SideError};
use doorbell_results::configuration::Configuration;

/// `gettid`.
#[derive(Debug)]
pub(super) struct Gettid;

impl Operation for Gettid {
    fn name(&self) -> &'static str {
        "gettid"
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
            summary: "system call that does next to nothing: gettid",
            how: "Calls gettid in a loop, by the bare instruction.",
            kernel: "Enters the kernel, reads the caller's own number, returns. Beside getppid it shows how much of a \
                     \"bare system call\" is the call chosen.",
            limits: "Percentiles are those of batch averages. `gettid-syscall` is the same through the C library's syscall().",
            sources: &["gettid(2)"],
        }
    }
    fn open(&self, _: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        Ok(Box::new(Solo(Self)))
    }
}

impl Alone for Gettid {
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
            std::hint::black_box(rustix::thread::gettid());
        }
        Ok(())
    }
}
