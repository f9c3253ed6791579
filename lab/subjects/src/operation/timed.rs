// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timed part of a side that repeats one thing, whatever the other side does meanwhile.

use std::time::Duration;

use super::alone::batch;
use crate::mechanism::Fault;
use doorbell_harness::control::Step;
use doorbell_harness::side::Side;
use doorbell_machine::clock::Now;

/// Does `once` over and over until the configuration's end, the
/// configuration's batch of it between two clock readings, and opens
/// and closes the window around. `warmup` counts what was done before.
pub(super) fn timed(
    side: &mut Side,
    warmup: u64,
    mut once: impl FnMut() -> Result<(), Fault>,
) -> Result<(), Fault> {
    let clock = side.clock;
    let batch = u64::from(batch(side));
    let count = side.configuration.until.count.unwrap_or(u64::MAX);
    let window = side.configuration.until.time_ns.map(|ns| clock.ticks(Duration::from_nanos(ns)));
    let opened = side.open_window();
    let mut before = opened;
    let mut done = 0;
    while done < count
        && !side.interrupted()
        && window.is_none_or(|window| before.saturating_sub(opened) < window)
    {
        for _ in 0..batch {
            once()?;
        }
        let after = clock.now_awake();
        side.times.operation.record(clock.ps(after.saturating_sub(before)) / batch);
        before = after;
        done += batch;
        side.step(Step::Operates, warmup + done);
    }
    side.close_window(opened);
    side.tally.sent = done;
    side.tally.seen = done;
    side.tally.warmup = warmup;
    Ok(())
}
