// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop of two sides in lockstep: one gives, the other takes and gives back.
//!
//! A round is there and back. Before it gives, each side writes the working set of the
//! configuration's size, if it has one.

use std::sync::atomic::{
    AtomicU8,
    Ordering::{Acquire, Release},
};
use std::time::Duration;

use super::alone::batch;
use super::count::{CHECK_ROUNDS, SwitchCount};
use crate::mechanism::{Fault, Links, OpenError};
use doorbell_harness::control::Step;
use doorbell_harness::role::Role;
use doorbell_harness::side::{Side, SideError, fill};
use doorbell_machine::clock::Now;

/// One side of an exchange.
pub(super) trait End {
    /// Whether both sides write the same working set, as `timectxswws` does, instead of one each.
    const SHARED_SET: bool = false;
    /// Says that it is about to hand over, before the working set is
    /// written; most have nothing to say.
    fn announce(&mut self) {}
    fn give(&mut self) -> Result<(), Fault>;
    /// Waits until it was handed over.
    fn take(&mut self) -> Result<(), Fault>;
}

struct Duo<F>(F);

impl<E: End, F: Fn(Role) -> Result<E, SideError> + Send + Sync> Links for Duo<F> {
    fn run_role(&self, role: Role, side: &mut Side) -> Result<(), SideError> {
        side.step(Step::Meets, 0);
        let mut end = (self.0)(role)?;
        let set = side.payload[if E::SHARED_SET { 0 } else { role.index() }];
        side.control.meet(2, 1);
        if role.index() == 0 { lead(&mut end, set, side) } else { follow(&mut end, set, side) }
    }
}

/// Two sides in lockstep, each of which takes its `end` in its own process or thread.
pub(super) fn exchange<E: End>(
    end: impl Fn(Role) -> Result<E, SideError> + Send + Sync + 'static,
) -> Result<Box<dyn Links>, OpenError> {
    Ok(Box::new(Duo(end)))
}

/// Rounds before anything is recorded.
const WARMUP: u64 = 200;

fn lead(end: &mut impl End, set: &[AtomicU8], side: &mut Side) -> Result<(), SideError> {
    let clock = side.clock;
    let batch = u64::from(batch(side));
    let mut round = 0_u64;
    let mut exchange = |side: &Side| -> Result<(), Fault> {
        round += 1;
        side.step(Step::Notifies, round);
        end.announce();
        fill(set, round as u8);
        end.give()?;
        side.step(Step::Waits, round);
        end.take()
    };
    for _ in 0..WARMUP {
        exchange(side)?;
    }
    side.control.meet(2, 2);
    // The other side opens its window now; one round more, and it is certain to stand in the loop.
    exchange(side)?;
    let count = side.configuration.until.count.unwrap_or(u64::MAX);
    let window = side.configuration.until.time_ns.map(|ns| clock.ticks(Duration::from_nanos(ns)));
    let opened = side.open_window();
    let mut before = opened;
    let mut done = 0;
    let mut last = false;
    while !last {
        last = done + batch >= count
            || side.interrupted()
            || window.is_some_and(|window| before.saturating_sub(opened) >= window);
        for left in (0..batch).rev() {
            if last && left == 0 {
                // Pairs with the Acquire load in `follow`: said before the last round is given.
                side.control.stop.store(1, Release);
            }
            exchange(side)?;
        }
        let after = clock.now_awake();
        side.times.operation.record(clock.ps(after.saturating_sub(before)) / batch);
        before = after;
        done += batch;
    }
    side.close_window(opened);
    side.tally.sent = done;
    side.tally.seen = done;
    side.tally.warmup = WARMUP + 1;
    side.control.meet(2, 3);
    let counted = SwitchCount::start();
    for _ in 0..CHECK_ROUNDS {
        exchange(side)?;
    }
    side.figures.extend(counted.stop(side.role));
    side.step(Step::Finished, done);
    Ok(())
}

fn follow(end: &mut impl End, set: &[AtomicU8], side: &mut Side) -> Result<(), SideError> {
    let mut round = 0_u64;
    let mut exchange = |side: &Side| -> Result<bool, Fault> {
        side.step(Step::Waits, round);
        end.take()?;
        round += 1;
        // Pairs with the Release store in `lead`. Read between taking and giving: after the give, the
        // leader might be a round further.
        let last = side.control.stop.load(Acquire) != 0;
        side.step(Step::Notifies, round);
        end.announce();
        fill(set, round as u8);
        end.give()?;
        Ok(last)
    };
    for _ in 0..WARMUP {
        exchange(side)?;
    }
    side.control.meet(2, 2);
    let opened = side.open_window();
    while !exchange(side)? {}
    side.close_window(opened);
    side.control.meet(2, 3);
    let counted = SwitchCount::start();
    for _ in 0..CHECK_ROUNDS {
        exchange(side)?;
    }
    side.figures.extend(counted.stop(side.role));
    side.step(Step::Finished, round);
    Ok(())
}
