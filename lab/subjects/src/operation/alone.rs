// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop of an operation that one side repeats.

use std::time::Duration;

use crate::lone_side::drive_alone;
use crate::mechanism::{Fault, Links, OpenError};
use doorbell_harness::control::Step;
use doorbell_harness::role::Role;
use doorbell_harness::side::{Side, SideError};
use doorbell_machine::clock::Now;
use doorbell_results::configuration::Pattern;

/// An operation ready to be repeated.
pub(super) trait Bench {
    /// Does it `count` times; all of it is timed.
    fn run(&mut self, count: u32) -> Result<(), Fault>;
    /// Makes ready for the next `count`; untimed.
    fn rewind(&mut self) -> Result<(), Fault> {
        Ok(())
    }
    /// Checks that each of the `total` operations did what it claims.
    fn check(&self, total: u64) -> Result<(), Fault> {
        let _ = total;
        Ok(())
    }
}

/// What needs no bench but itself.
impl<F: FnMut(u32) -> Result<(), Fault>> Bench for F {
    fn run(&mut self, count: u32) -> Result<(), Fault> {
        self(count)
    }
}

/// An operation of one side, set up in the side's own process or thread.
struct Solo<F>(F);

impl<B: Bench, F: Fn(&Side) -> Result<B, SideError> + Send + Sync> Links for Solo<F> {
    fn run_role(&self, role: Role, side: &mut Side) -> Result<(), SideError> {
        drive_alone(role, side, |side| repeat(&mut (self.0)(side)?, side))
    }
}

/// One side repeats what `set_up` makes ready.
pub(super) fn alone<B: Bench>(
    set_up: impl Fn(&Side) -> Result<B, SideError> + Send + Sync + 'static,
) -> Result<Box<dyn Links>, OpenError> {
    Ok(Box::new(Solo(set_up)))
}

/// One side repeats `call`, which needs nothing set up.
pub(super) fn calls(call: impl Fn() + Copy + Send + Sync + 'static) -> Result<Box<dyn Links>, OpenError> {
    alone(move |_| {
        Ok(move |count| {
            (0..count).for_each(|_| call());
            Ok(())
        })
    })
}

/// Batches before anything is recorded: code, data and branch history are warm after a few.
const WARMUP: u64 = 3;

fn repeat(bench: &mut impl Bench, side: &mut Side) -> Result<(), SideError> {
    let clock = side.clock;
    let batch = batch(side);
    let per_sample = u64::from(batch);
    for sequence in 0..WARMUP {
        bench.rewind()?;
        bench.run(batch)?;
        side.step(Step::Operates, sequence);
    }
    let count = side.configuration.until.count.unwrap_or(u64::MAX);
    let window = side.configuration.until.time_ns.map(|ns| clock.ticks(Duration::from_nanos(ns)));
    let opened = side.open_window();
    let mut done = 0;
    while done < count && !side.interrupted() {
        bench.rewind()?;
        let before = clock.now_awake();
        bench.run(batch)?;
        let after = clock.now_awake();
        side.times.operation.record(clock.ps(after.saturating_sub(before)) / per_sample);
        done += per_sample;
        side.step(Step::Operates, done);
        if window.is_some_and(|window| after.saturating_sub(opened) >= window) {
            break;
        }
    }
    side.close_window(opened);
    side.tally.sent = done;
    side.tally.seen = done;
    side.tally.warmup = WARMUP * per_sample;
    Ok(bench.check(done + WARMUP * per_sample)?)
}

/// Operations between two clock readings.
pub(super) fn batch(side: &Side) -> u32 {
    match side.configuration.pattern {
        Pattern::Operation { batch } => batch.max(1),
        _ => 1,
    }
}
