// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU's timer in relation to this process's clock.
//!
//! A kernel answers words with the time at which it saw them. The answer lies between the CPU's two readings around it, so half the time
//! between those bounds the error; the quickest exchange of a set bounds it best. Two sets, before and after a trial, tell how much faster
//! one clock goes than the other, which is taken off.

use doorbell_machine::clock::Now;
use doorbell_results::machine::clock::{Clock, Ticks};

/// A word, and the answer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exchange {
    /// Just before the word was written, and just after the answer was seen, nanoseconds.
    pub(super) before: u64,
    pub(super) after: u64,
    /// When the kernel saw it, nanoseconds of its own.
    pub(super) seen: u64,
}

/// Where one clock is on the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Relation {
    /// A moment on both, nanoseconds.
    cpu: u64,
    gpu: u64,
    /// Nanoseconds of the CPU's clock for one of the GPU's, less one.
    drift: f64,
    /// How far a time that was brought over may be off, nanoseconds.
    pub(super) bound_ns: f64,
}

impl Relation {
    /// What two sets of exchanges say; none if one is empty.
    pub(super) fn of(first: &[Exchange], last: &[Exchange]) -> Option<Self> {
        let quickest = |set: &[Exchange]| {
            set.iter().min_by_key(|exchange| exchange.after.saturating_sub(exchange.before)).copied()
        };
        let (start, end) = (quickest(first)?, quickest(last)?);
        let middle = |one: &Exchange| one.before + one.after.saturating_sub(one.before) / 2;
        let half = |one: &Exchange| one.after.saturating_sub(one.before) as f64 / 2.0;
        let (cpu, gpu) = (middle(&start), start.seen);
        let gone = end.seen.saturating_sub(gpu);
        let drift = if gone == 0 { 0.0 } else { (middle(&end) - cpu) as f64 / gone as f64 - 1.0 };
        // Between the two sets the error is between theirs.
        let bound_ns = half(&start).max(half(&end)) + step_ns(first.iter().chain(last)) as f64;
        Some(Self { cpu, gpu, drift, bound_ns })
    }

    /// `gpu_ns` on this process's clock, nanoseconds.
    pub(super) fn cpu_ns(&self, gpu_ns: u64) -> f64 {
        let since = gpu_ns as f64 - self.gpu as f64;
        self.cpu as f64 + since * (1.0 + self.drift)
    }
}

/// The step in which the timer goes: the greatest of which all differences are multiples.
fn step_ns<'a>(exchanges: impl Iterator<Item = &'a Exchange> + Clone) -> u64 {
    let times = exchanges.map(|exchange| exchange.seen);
    let differences = times.clone().zip(times.skip(1)).map(|(one, other)| one.abs_diff(other));
    differences.fold(0, common).max(1)
}

fn common(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// `ticks` in nanoseconds.
pub(super) fn ns(clock: Clock, ticks: Ticks) -> u64 {
    clock.ps(ticks) / 1000
}

/// Now, nanoseconds.
pub(super) fn now_ns(clock: Clock) -> u64 {
    ns(clock, clock.now())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exchanges from `start` on with a GPU that is `offset` ahead, goes `drift` faster and in steps of `step`.
    fn exchanges(start: u64, offset: i64, drift: f64, step: u64) -> Vec<Exchange> {
        (0..200_u64)
            .map(|round| {
                let before = start + round * 5000;
                // The way there is a third of the round trip, which now and then takes long.
                let took = if round % 7 == 0 { 1800 } else { 2500 + round * 31 % 9000 };
                let at = before + took / 3;
                let seen = (at as f64 * (1.0 + drift)) as i64 + offset;
                Exchange { before, after: before + took, seen: seen as u64 / step * step }
            })
            .collect()
    }

    #[test]
    fn a_planted_offset_and_drift_are_found_within_the_stated_bound() {
        for (offset, drift, step) in
            [(0, 0.0, 1), (987_654_321_000, 50e-6, 32), (-40_000, -200e-6, 1), (5_000, 1e-6, 1000)]
        {
            let [first, last] =
                [1_000_000_000, 1_800_000_000].map(|start| exchanges(start, offset, drift, step));
            let relation = Relation::of(&first, &last).unwrap();
            assert!(relation.bound_ns <= 900.0 + step as f64 + 1.0, "{relation:?}");
            for at in [1_000_000_000_u64, 1_400_000_000, 1_801_000_000] {
                let seen = ((at as f64 * (1.0 + drift)) as i64 + offset) as u64;
                let off = relation.cpu_ns(seen) - at as f64;
                assert!(off.abs() <= relation.bound_ns, "{off} ns at {at}: {relation:?}");
            }
        }
        assert_eq!(Relation::of(&[], &exchanges(0, 0, 0.0, 1)), None);
    }
}
