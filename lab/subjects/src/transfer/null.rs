// SPDX-License-Identifier: MIT OR Apache-2.0
//! No transfer: what the harness costs.

use super::{CONTROL, Engine, Noticed, Place, Transfer};
use crate::mechanism::{Explanation, Fault, OpenError};

#[derive(Debug)]
pub(super) struct Null;

struct Nothing;

impl Engine for Null {
    fn name(&self) -> &'static str {
        CONTROL
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "no transfer: what the loop, its clock readings and its counts cost",
            how: "Chooses a place, reads the clock, transfers nothing, reads the clock.",
            kernel: "Nothing.",
            limits: "It is the control of every run of doorbell io, and no way to wait.",
            sources: &["this program"],
        }
    }
    fn noticed(&self) -> Noticed {
        Noticed::Nothing
    }
    fn open<'buffer>(&self, _: Place<'buffer>) -> Result<Box<dyn Transfer + 'buffer>, OpenError> {
        Ok(Box::new(Nothing))
    }
}

impl Transfer for Nothing {
    #[inline]
    fn once(&mut self, offset: u64) -> Result<(), Fault> {
        std::hint::black_box(offset);
        Ok(())
    }
}
