// SPDX-License-Identifier: MIT OR Apache-2.0
//! A waiter that spins before it sleeps: the recorded sleeps gone through again.
//!
//! SUMMARY: each wait of the thread in the same place begins when the thread has done what it had to do after the last wake-up. What arrived
//! until then is there already. What arrives within the spin is handed over at the price of spinning; what arrives later finds the
//! thread asleep and takes as long as it took in the record, and the spin was in vain.
//!
//! DETAILS: arrivals are the moments at which the kernel began to wake, so what comes while the thread is awake left no event. With a thread
//! that is busy for a small share of the time that is little, and the median is right; of the longest waits it is all, so p99 is never
//! predicted, and nothing is of a busy thread.

use std::time::Duration;

use super::Refusal;
use super::record::{Replay, Waited, stretches, tells, together};
use doorbell_results::anatomy::program::MachineCosts;

/// The spins of which the best is sought, microseconds.
const TRIED: [u64; 9] = [1, 2, 5, 10, 20, 50, 100, 200, 500];
/// The share of a wake-up's price, waiting and CPU time together, that a spin must save to be worth its lines.
const WORTH: f64 = 0.05;

/// Goes through waits that follow one another.
pub(super) fn replay(waits: &[Waited], spin: f64, costs: &MachineCosts) -> Replay {
    let mut replay = Replay::default();
    // When the thread begins to wait, in the record and as it would be.
    let (mut recorded, mut begins) = (0.0, 0.0_f64);
    for wait in waits {
        let arrival = recorded + wait.slept;
        let goes_on = if !wait.changed {
            arrival.max(begins) + wait.took
        } else if arrival <= begins {
            replay.spared += 1;
            replay.took.push(begins - arrival);
            replay.cpu -= costs.sleep_ns;
            begins
        } else if arrival - begins <= spin {
            replay.spared += 1;
            replay.took.push(costs.hand_over_ns);
            replay.cpu += arrival - begins + costs.hand_over_ns - costs.sleep_ns;
            arrival + costs.hand_over_ns
        } else {
            replay.took.push(wait.took);
            replay.cpu += spin;
            arrival + wait.took
        };
        recorded = arrival + wait.took + wait.awake;
        begins = goes_on + wait.awake;
    }
    replay.lasted = recorded;
    replay
}

/// The spin with which waiting and CPU time together are least, a microsecond of the one being worth one of the other.
pub(super) fn best(waits: &[Waited], costs: &MachineCosts) -> Result<Duration, Refusal> {
    tells(waits)?;
    let changed: Vec<f64> = waits.iter().filter(|wait| wait.changed).map(|wait| wait.took).collect();
    let waited = changed.iter().sum::<f64>() / changed.len().max(1) as f64;
    let saves = |micros: u64| {
        let all = together(&stretches(waits, |some| replay(some, micros as f64 * 1e3, costs)));
        waited - (all.took.iter().sum::<f64>() + all.cpu) / all.took.len().max(1) as f64
    };
    let best = TRIED.map(|micros| (saves(micros), micros));
    let best = best.into_iter().max_by(|(one, _), (other, _)| one.total_cmp(other));
    match best {
        Some((saved, micros)) if saved > WORTH * (waited + costs.sleep_ns) => {
            Ok(Duration::from_micros(micros))
        }
        _ => Err(Refusal::NoGain { longest: Duration::from_micros(TRIED[TRIED.len() - 1]) }),
    }
}
