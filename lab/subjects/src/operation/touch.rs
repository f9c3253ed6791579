// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing a working set without any switch: what is subtracted from
//! a switch with that working set.

use std::sync::atomic::AtomicU8;

use super::alone::{Alone, Bench, Solo};
use super::{Form, Operation};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_harness::side::{Side, SideError, fill};
use doorbell_results::configuration::Configuration;

/// `memset` of the configuration's size.
#[derive(Debug)]
pub(super) struct Touch;

impl Operation for Touch {
    fn name(&self) -> &'static str {
        "touch"
    }
    fn form(&self) -> Form {
        Form::alone("set", 16)
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "writing a working set over and over, without a switch",
            how: "Fills --working-set bytes of memory in a loop, as each side of a switch with \
                that working set does.",
            kernel: "Nothing: the memory is mapped before.",
            limits: "One set in a loop stays as warm as the caches let it. Two sides that \
                alternate share the caches of one core: what that costs them is the difference to \
                be seen.",
            sources: &["tsuna/contextswitch, timectxswws"],
        }
    }
    fn open(&self, _: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        Ok(Box::new(Solo(Self)))
    }
}

impl Alone for Touch {
    type Bench = Set;
    fn set_up(&self, side: &Side) -> Result<Set, SideError> {
        Ok(Set { bytes: side.payload[0], value: 0 })
    }
}

/// The bytes of a working set.
#[derive(Debug)]
pub(super) struct Set {
    bytes: &'static [AtomicU8],
    value: u8,
}

impl Bench for Set {
    fn run(&mut self, count: u32) -> Result<(), Fault> {
        for _ in 0..count {
            self.value = self.value.wrapping_add(1);
            fill(self.bytes, self.value);
        }
        Ok(())
    }
}
