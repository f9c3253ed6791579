// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times of one primitive cost, until there are enough or the
//! primitive cost's share of the reading is used up.

use std::time::Duration;

use doorbell_machine::clock::Now;
use doorbell_results::machine::clock::{Clock, Ticks};
use doorbell_results::record::result::Primitive;

/// Longest a single primitive cost may take: six of them stay below a
/// tenth of a second even where every one runs out.
const LONGEST: Duration = Duration::from_millis(15);

/// Fewest samples of which a median says anything. On a machine so busy that [`LONGEST`] brings
/// fewer, a primitive cost may take [`LONGEST_FOR_FEW`].
const FEW: usize = 20;
const LONGEST_FOR_FEW: Duration = Duration::from_millis(60);

/// When a primitive cost is given up of which there is no sample at
/// all: where the kernel counts no switches, for example.
const LONGEST_FOR_NONE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct Samples {
    clock: Clock,
    until: Ticks,
    until_few: Ticks,
    until_none: Ticks,
    enough: usize,
    ps: Vec<u64>,
}

impl Samples {
    /// None yet, and `enough` are wanted.
    pub(super) fn new(clock: Clock, enough: usize) -> Self {
        let now = clock.now();
        let [until, until_few, until_none] = [LONGEST, LONGEST_FOR_FEW, LONGEST_FOR_NONE]
            .map(|longest| now.saturating_add(clock.ticks(longest)));
        Self { clock, until, until_few, until_none, enough, ps: Vec::with_capacity(enough) }
    }

    pub(super) fn wanting(&self) -> bool {
        let until = match self.ps.len() {
            0 => self.until_none,
            1..FEW => self.until_few,
            _ => self.until,
        };
        self.ps.len() < self.enough && self.clock.now() < until
    }

    /// Adds a time that `operations` took together; none at all is no sample.
    pub(super) fn add(&mut self, ticks: Ticks, operations: u64) {
        self.ps.extend(self.clock.ps(ticks).checked_div(operations));
    }

    /// Times `batch` calls of `operation`, again and again.
    pub(super) fn batches(mut self, batch: u64, mut operation: impl FnMut()) -> Self {
        while self.wanting() {
            let before = self.clock.now_awake();
            for _ in 0..batch {
                operation();
            }
            let after = self.clock.now_awake();
            self.add(after.saturating_sub(before), batch);
        }
        self
    }

    pub(super) fn and(mut self, other: Self) -> Self {
        self.ps.extend(other.ps);
        self
    }

    /// The primitive cost they make; of no sample one that says so by its count.
    pub(super) fn primitive(mut self, name: &str) -> Primitive {
        self.ps.sort_unstable();
        let ns = |ps: Option<&u64>| ps.map_or(0.0, |ps| *ps as f64 / 1000.0);
        Primitive {
            name: name.to_owned(),
            p50_ns: ns(self.ps.get(self.ps.len() / 2)),
            min_ns: ns(self.ps.first()),
            count: self.ps.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Such a primitive cost once was measured for ever.
    #[test]
    fn a_primitive_of_which_nothing_is_ever_counted_ends_without_a_sample() {
        let mut samples = Samples::new(doorbell_machine::clock::calibrate(Duration::from_millis(5)), 50);
        while samples.wanting() {
            samples.add(1000, 0);
        }
        assert_eq!(samples.primitive("same-core-switch").count, 0);
    }
}
