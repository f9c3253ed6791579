// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading the clock through the vDSO: a call that stays in user mode
//! where the clock source allows.

use super::alone::{Alone, Bench, Solo};
use super::{Form, Operation};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_harness::side::{Side, SideError};
use doorbell_machine::clock::monotonic_ns;
use doorbell_results::configuration::Configuration;

/// `clock_gettime(CLOCK_MONOTONIC)`.
#[derive(Debug)]
pub(super) struct ClockRead;

impl Operation for ClockRead {
    fn name(&self) -> &'static str {
        "clock-read"
    }
    fn form(&self) -> Form {
        Form::alone("call", 5000)
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "clock_gettime(CLOCK_MONOTONIC) through the vDSO",
            how: "Reads the monotonic clock in a loop.",
            kernel: "Nothing where the clock source is the time-stamp counter: the vDSO computes \
                in user mode. With another clock source each reading is a system call, and this \
                row is as dear as `getppid`.",
            limits: "Percentiles are those of batch averages.",
            sources: &["vdso(7)", "/sys/devices/system/clocksource/clocksource0/current_clocksource"],
        }
    }
    fn open(&self, _: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        Ok(Box::new(Solo(Self)))
    }
}

impl Alone for ClockRead {
    type Bench = Reads;
    fn set_up(&self, _: &Side) -> Result<Reads, SideError> {
        Ok(Reads)
    }
}

#[derive(Debug)]
pub(super) struct Reads;

impl Bench for Reads {
    fn run(&mut self, count: u32) -> Result<(), Fault> {
        for _ in 0..count {
            std::hint::black_box(monotonic_ns());
        }
        Ok(())
    }
}
