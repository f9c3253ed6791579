// SPDX-License-Identifier: MIT OR Apache-2.0
//! The journal of single wakes, which is joined with the kernel's events: there are none to be had here, so nobody has a journal.

use crate::anatomy::cut::Stamps;
use doorbell_results::machine::clock::Clock;

/// What nobody has.
#[derive(Debug, Clone, Copy)]
pub enum Journal {}

impl Journal {
    pub fn woke(&self, _: &Stamps, _: u64, _: Clock) {
        match *self {}
    }
    pub fn await_traced(&self) {
        match *self {}
    }
}
