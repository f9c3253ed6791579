// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bare system call, by `getppid`.

use super::Operation;
use super::alone::{Alone, Bench, Solo};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_harness::side::{Side, SideError};
use doorbell_results::configuration::Configuration;

/// `getppid`.
#[derive(Debug)]
pub(super) struct Getppid;

impl Operation for Getppid {
    fn name(&self) -> &'static str {
        "getppid"
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
            summary: "system call that does next to nothing: getppid",
            how: "Calls getppid in a loop; the C library does not cache it.",
            kernel: "Enters the kernel, reads one field of the parent under RCU, returns: the mode switch and what the \
                     mitigations add to it.",
            limits: "Percentiles are those of batch averages: a single call is too short to be timed alone.",
            sources: &["`perf bench syscall basic`", "will-it-scale, getppid1"],
        }
    }
    fn open(&self, _: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        Ok(Box::new(Solo(Self)))
    }
}

impl Alone for Getppid {
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
            std::hint::black_box(rustix::process::getppid());
        }
        Ok(())
    }
}
