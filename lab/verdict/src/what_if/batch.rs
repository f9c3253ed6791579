// SPDX-License-Identifier: MIT OR Apache-2.0
//! A waker that gathers notifications for a while and wakes once for all of them.
//!
//! SUMMARY: the first notification opens a batch, which ends after the given time; whoever comes
//! until then waits for its end, and one wake-up serves all. Arrivals are those of the record.

use super::record::{Replay, Waited};
use doorbell_results::anatomy::program::MachineCosts;

pub(super) fn replay(waits: &[Waited], batch: f64, costs: &MachineCosts) -> Replay {
    let mut replay = Replay::default();
    // When the open batch ends, and how long its wake-up takes.
    let mut open: Option<(f64, f64)> = None;
    for wait in waits {
        let arrival = replay.lasted + wait.slept;
        replay.lasted += wait.lasted();
        if !wait.changed {
            continue;
        }
        match open.filter(|(end, _)| arrival <= *end) {
            Some((end, took)) => {
                replay.spared += 1;
                replay.cpu -= costs.sleep_ns;
                replay.took.push(end - arrival + took);
            }
            None => {
                open = Some((arrival + batch, wait.took));
                replay.took.push(batch + wait.took);
            }
        }
    }
    replay
}
