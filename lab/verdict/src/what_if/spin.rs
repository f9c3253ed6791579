// SPDX-License-Identifier: MIT OR Apache-2.0
//! A waiter that spins before it sleeps: the recorded sleeps gone through again.
//!
//! SUMMARY: each wait of the thread in the same place begins when the thread has done what it had
//! to do after the last wake-up. What arrived until then is there already. What arrives within the
//! spin is handed over at the price of spinning; what arrives later finds the thread asleep and
//! takes as long as it took in the record, and the spin was in vain.
//!
//! A waiter that came to its waker's CPU cannot spin there: it keeps another CPU busy, and where it
//! sleeps in the end its wake-up goes from one CPU to the other and takes what that takes here.
//!
//! DETAILS: arrivals are the moments at which the kernel began to wake, so what comes while the
//! thread is awake left no event. With a thread that is busy for a small share of the time that is
//! little, and the median is right; of the longest waits it is all, so p99 is never predicted, and
//! nothing is of a busy thread.

use std::time::Duration;

use super::record::{Replay, Waited, shared, stretches, tells, together};
use super::{Refusal, costs};
use doorbell_results::anatomy::program::{Edge, MachineCosts};

/// The spins of which the best is sought, microseconds.
const TRIED: [u64; 9] = [1, 2, 5, 10, 20, 50, 100, 200, 500];
/// The share of a wake-up's price, waiting and CPU time together,
/// that a spin must save to be worth its lines.
const WORTH: f64 = 0.05;

/// The share of wake-ups to the waker's CPU from which on it matters where the waiter spins.
const SHARED: f64 = 0.05;

/// What a wake-up from one CPU to another takes where the scheduler
/// had both on one; none where it had not.
pub(super) fn apart(edge: &Edge, waits: &[Waited], machine: &MachineCosts) -> Result<Option<f64>, Refusal> {
    if shared(waits) < SHARED {
        return Ok(None);
    }
    let mechanism = costs::listed(&edge.mechanism).unwrap_or("futex");
    Ok(Some(costs::price(machine, mechanism, false, edge.slept.p50_ns)?.wake_ns))
}

/// Goes through waits that follow one another; `apart` is what a
/// wake-up takes that had been to the waker's CPU.
pub(super) fn replay(waits: &[Waited], spin: f64, costs: &MachineCosts, apart: Option<f64>) -> Replay {
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
            let took = apart.filter(|_| wait.on_wakers_cpu()).unwrap_or(wait.took);
            replay.took.push(took);
            replay.cpu += spin;
            arrival + took
        };
        recorded = arrival + wait.took + wait.awake;
        begins = goes_on + wait.awake;
    }
    replay.lasted = recorded;
    replay
}

/// The spin with which waiting and CPU time together are least, a
/// microsecond of the one being worth one of the other.
pub(super) fn best(waits: &[Waited], costs: &MachineCosts, apart: Option<f64>) -> Result<Duration, Refusal> {
    tells(waits)?;
    let changed: Vec<f64> = waits.iter().filter(|wait| wait.changed).map(|wait| wait.took).collect();
    let waited = changed.iter().sum::<f64>() / changed.len().max(1) as f64;
    let saves = |micros: u64| {
        let all = together(&stretches(waits, |some| replay(some, micros as f64 * 1e3, costs, apart)));
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
