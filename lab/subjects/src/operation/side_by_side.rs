// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop of two sides that do not wait for each other: each does
//! its part as often as the scheduler lets it.

use std::sync::atomic::Ordering::{Acquire, Release};

use super::count::{CHECK_ROUNDS, SwitchCount};
use super::timed::timed;
use crate::mechanism::{Fault, Links};
use doorbell_harness::control::Step;
use doorbell_harness::role::Role;
use doorbell_harness::side::{Side, SideError};

/// What each side does over and over.
pub(super) trait Beside: Send + Sync + 'static {
    fn once(&self) -> Result<(), Fault>;
}

pub(super) struct Pair<B: Beside>(pub(super) B);

/// Repetitions before anything is recorded.
const WARMUP: u64 = 200;

impl<B: Beside> Links for Pair<B> {
    fn run_role(&self, role: Role, side: &mut Side) -> Result<(), SideError> {
        side.step(Step::Meets, 0);
        side.control.meet(2, 1);
        if role.index() == 0 { self.lead(side) } else { self.follow(side) }
    }
}

impl<B: Beside> Pair<B> {
    fn lead(&self, side: &mut Side) -> Result<(), SideError> {
        self.warm_up(side)?;
        timed(side, WARMUP, || self.0.once())?;
        // Pairs with the Acquire loads in `follow`.
        side.control.stop.store(1, Release);
        side.control.meet(2, 3);
        let counted = SwitchCount::start();
        for _ in 0..CHECK_ROUNDS {
            self.0.once()?;
        }
        side.figures.extend(counted.stop(side.role));
        side.control.stop.store(2, Release);
        side.step(Step::Finished, side.tally.sent);
        Ok(())
    }

    fn follow(&self, side: &mut Side) -> Result<(), SideError> {
        self.warm_up(side)?;
        let mut done = 0;
        let opened = side.open_window();
        while side.control.stop.load(Acquire) == 0 {
            self.0.once()?;
            done += 1;
            side.step(Step::Operates, done);
        }
        side.close_window(opened);
        side.control.meet(2, 3);
        let counted = SwitchCount::start();
        while side.control.stop.load(Acquire) == 1 {
            self.0.once()?;
        }
        side.figures.extend(counted.stop(side.role));
        side.step(Step::Finished, done);
        Ok(())
    }

    /// Both sides warm up, and neither begins before the other has:
    /// what one counts the other caused.
    fn warm_up(&self, side: &Side) -> Result<(), Fault> {
        for _ in 0..WARMUP {
            self.0.once()?;
        }
        side.control.meet(2, 2);
        Ok(())
    }
}
