// SPDX-License-Identifier: MIT OR Apache-2.0
//! No transfer: what the harness costs.

use super::{CONTROL, Engine, Explanation, Fault, Noticed, Transfer};

struct Nothing;

pub(super) const ENGINE: Engine = Engine {
    name: CONTROL,
    explanation: Explanation {
        summary: "no transfer: what the loop, its clock readings and its counts cost",
        how: "Chooses a place, reads the clock, transfers nothing, reads the clock.",
        kernel: "Nothing.",
        limits: "It is the control of every run of doorbell io, and no way to wait.",
        sources: &["this program"],
    },
    noticed: Noticed::Nothing,
    kernel_thread: false,
    available: || Ok(()),
    open: |_| Ok(Box::new(Nothing)),
};

impl Transfer for Nothing {
    #[inline]
    fn once(&mut self, offset: u64) -> Result<(), Fault> {
        std::hint::black_box(offset);
        Ok(())
    }
}
