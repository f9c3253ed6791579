// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop of two sides that do not wait for each other: each gives way, by `sched_yield`, as often
//! as the scheduler lets it.

use std::sync::atomic::Ordering::{Acquire, Release};

use rustix::thread::sched_yield;

use super::count::{CHECK_ROUNDS, SwitchCount};
use super::timed::timed;
use crate::mechanism::Links;
use doorbell_harness::control::Step;
use doorbell_harness::role::Role;
use doorbell_harness::side::{Side, SideError};

pub(super) struct Yields;

/// Repetitions before anything is recorded.
const WARMUP: u64 = 200;

impl Links for Yields {
    fn run_role(&self, role: Role, side: &mut Side) -> Result<(), SideError> {
        side.step(Step::Meets, 0);
        side.control.meet(2, 1);
        if role.index() == 0 { lead(side) } else { follow(side) }
    }
}

fn lead(side: &mut Side) -> Result<(), SideError> {
    warm_up(side);
    timed(side, WARMUP, || {
        sched_yield();
        Ok(())
    })?;
    // Pairs with the Acquire loads in `follow`.
    side.control.stop.store(1, Release);
    side.control.meet(2, 3);
    let counted = SwitchCount::start();
    for _ in 0..CHECK_ROUNDS {
        sched_yield();
    }
    side.figures.extend(counted.stop(side.role));
    side.control.stop.store(2, Release);
    side.step(Step::Finished, side.tally.sent);
    Ok(())
}

fn follow(side: &mut Side) -> Result<(), SideError> {
    warm_up(side);
    let mut done = 0;
    let opened = side.open_window();
    while side.control.stop.load(Acquire) == 0 {
        sched_yield();
        done += 1;
        side.step(Step::Operates, done);
    }
    side.close_window(opened);
    side.control.meet(2, 3);
    let counted = SwitchCount::start();
    while side.control.stop.load(Acquire) == 1 {
        sched_yield();
    }
    side.figures.extend(counted.stop(side.role));
    side.step(Step::Finished, done);
    Ok(())
}

/// Both sides warm up, and neither begins before the other has:
/// what one counts the other caused.
fn warm_up(side: &Side) {
    for _ in 0..WARMUP {
        sched_yield();
    }
    side.control.meet(2, 2);
}
