// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop of stress-ng's `--switch`: both sides at one object of
//! one place, so that each waits for the other.

use std::sync::atomic::Ordering::{Acquire, Release};

use super::timed::timed;
use crate::mechanism::{Fault, Links};
use doorbell_harness::control::Step;
use doorbell_harness::role::Role;
use doorbell_harness::side::{Side, SideError};

/// An object at which two sides take turns, opened before they part.
pub(super) trait Stream: Send + Sync + 'static {
    /// What the measured side does once: one operation.
    fn lead(&self) -> Result<(), Fault>;
    /// What the other side does over and over.
    fn follow(&self) -> Result<(), Fault>;
    /// Frees the other side from where it may wait, after it was told to stop.
    fn free(&self) -> Result<(), Fault>;
}

pub(super) struct Turns<S: Stream>(pub(super) S);

/// Operations before anything is recorded.
const WARMUP: u64 = 200;

impl<S: Stream> Links for Turns<S> {
    fn run_role(&self, role: Role, side: &mut Side) -> Result<(), SideError> {
        side.step(Step::Meets, 0);
        side.control.meet(2, 1);
        if role.index() == 0 { self.lead(side) } else { self.follow(side) }
    }
}

impl<S: Stream> Turns<S> {
    fn lead(&self, side: &mut Side) -> Result<(), SideError> {
        for sequence in 0..WARMUP {
            self.0.lead()?;
            side.step(Step::Operates, sequence);
        }
        timed(side, WARMUP, || self.0.lead())?;
        // Pairs with the Acquire load in `follow`.
        side.control.stop.store(1, Release);
        self.0.free()?;
        side.step(Step::Finished, side.tally.sent);
        Ok(())
    }

    fn follow(&self, side: &mut Side) -> Result<(), SideError> {
        let mut done = 0;
        let opened = side.open_window();
        while side.control.stop.load(Acquire) == 0 {
            self.0.follow()?;
            done += 1;
            side.step(Step::Operates, done);
        }
        side.close_window(opened);
        side.step(Step::Finished, done);
        Ok(())
    }
}
