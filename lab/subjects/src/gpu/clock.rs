// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU's timer in relation to this process's clock.
//!
//! A kernel answers words, each with the time at which the word had come and the time at which it
//! last asked in vain. A word cannot come before it was sent, nor be missed after it was written,
//! nor be answered after the answer: each exchange bounds the difference of the two clocks from
//! both sides, and many at different points of the kernel's loop bound it to the time that one
//! question takes over the bus, half of it either way. Two sets, before and after a trial, tell how
//! much faster one clock goes than the other, which is taken off.

use doorbell_machine::clock::Now;
use doorbell_results::machine::clock::{Clock, Ticks};

/// A word, and the answer to it; nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exchange {
    /// Just before the word was written, once it was there for
    /// everybody, and just after the answer was seen.
    pub(super) before: u64,
    pub(super) written: u64,
    pub(super) after: u64,
    /// By the kernel's own clock: when the word had come, and when it was last asked for in vain.
    pub(super) seen: u64,
    pub(super) missed: Option<u64>,
}

/// What the CPU's clock shows more than the GPU's, nanoseconds: at least and at most.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ahead {
    least: f64,
    most: f64,
}

impl Ahead {
    /// What all of `set` allow together; none if it is empty.
    fn of(set: &[Exchange]) -> Option<Self> {
        let difference = |cpu: u64, gpu: u64| cpu as f64 - gpu as f64;
        let least = set.iter().map(|one| difference(one.before, one.seen)).reduce(f64::max)?;
        let most = |one: &Exchange| {
            let answered = difference(one.after, one.seen);
            one.missed.map_or(answered, |missed| answered.min(difference(one.written, missed)))
        };
        let most = set.iter().map(most).reduce(f64::min)?;
        Some(Self { least, most })
    }

    fn middle(self) -> f64 {
        self.least.midpoint(self.most)
    }

    /// How far the middle may be off, but for a step of the timer. Where steps make more of what is
    /// at least than of what is at most, it is less than that; taken with its sign, exchanges that
    /// contradict each other by more would make a bound of less than nothing.
    fn half(self) -> f64 {
        (self.most - self.least).abs() / 2.0
    }
}

/// Where one clock is on the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Relation {
    /// A moment on the GPU's, and what the CPU's then shows more; nanoseconds.
    gpu: u64,
    ahead_ns: f64,
    /// Nanoseconds of the CPU's clock for one of the GPU's, less one.
    drift: f64,
    /// How far a time that was brought over may be off, nanoseconds.
    pub(super) bound_ns: f64,
}

impl Relation {
    /// What two sets of exchanges say; none if one is empty.
    pub(super) fn of(first: &[Exchange], last: &[Exchange]) -> Option<Self> {
        let (start, end) = (Ahead::of(first)?, Ahead::of(last)?);
        let (gpu, later) = (first[first.len() / 2].seen, last[last.len() / 2].seen);
        let gone = later.saturating_sub(gpu) as f64;
        let drift = if gone > 0.0 { (end.middle() - start.middle()) / gone } else { 0.0 };
        // Between the two sets the error is between theirs.
        let bound_ns = start.half().max(end.half()) + step_ns(first.iter().chain(last)) as f64;
        Some(Self { gpu, ahead_ns: start.middle(), drift, bound_ns })
    }

    /// `gpu_ns` on this process's clock, nanoseconds.
    pub(super) fn cpu_ns(&self, gpu_ns: u64) -> f64 {
        let since = gpu_ns as f64 - self.gpu as f64;
        gpu_ns as f64 + self.ahead_ns + since * self.drift
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

    /// What one question of the kernel's takes, and how much of it
    /// until the word is read; and the way of an answer.
    const ASKS: u64 = 1000;
    const READS: u64 = 400;
    const ANSWERS: u64 = 700;

    /// Exchanges from `start` on with a GPU that is `offset` ahead,
    /// goes `drift` faster and in steps of `step`.
    fn exchanges(start: u64, offset: i64, drift: f64, step: u64) -> Vec<Exchange> {
        let gpu = |at: u64| ((at as f64 * (1.0 + drift)) as i64 + offset) as u64 / step * step;
        (0..200_u64)
            .map(|round| {
                let (before, written) = (start + round * 5000, start + round * 5000 + 30);
                // The kernel asks again and again; the first question was asked so long before.
                let mut asks = before - 3000 + round * 37 % ASKS;
                while asks + READS < written {
                    asks += ASKS;
                }
                let seen = asks + ASKS;
                // Now and then the CPU is late.
                let after = seen + ANSWERS + if round % 7 == 0 { 9000 } else { 0 };
                Exchange { before, written, after, seen: gpu(seen), missed: Some(gpu(asks - ASKS)) }
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
            assert!(relation.bound_ns <= 600.0 + 2.0 * step as f64, "{relation:?}");
            for at in [1_000_000_000_u64, 1_400_000_000, 1_801_000_000] {
                let seen = ((at as f64 * (1.0 + drift)) as i64 + offset) as u64;
                let off = relation.cpu_ns(seen) - at as f64;
                assert!(off.abs() <= relation.bound_ns, "{off} ns at {at}: {relation:?}");
            }
        }
        assert_eq!(Relation::of(&[], &exchanges(1_000_000, 0, 0.0, 1)), None);
    }

    #[test]
    fn exchanges_that_contradict_each_other_are_no_clocks_that_are_known_well() {
        let mut set = exchanges(1_000_000_000, 0, 0.0, 1);
        let jumps = 50_000;
        set[100..].iter_mut().for_each(|exchange| {
            exchange.seen += jumps;
            exchange.missed = exchange.missed.map(|missed| missed + jumps);
        });
        let relation = Relation::of(&set, &set).unwrap();
        assert!(relation.bound_ns > jumps as f64 / 3.0, "{relation:?}");
    }
}
