// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a run that is to take so long shares its time out to its pairs.

use doorbell_results::plan::Plan;
use std::time::{Duration, Instant};

/// What a block takes beside its slices is unknown before the first.
const UNKNOWN: Duration = Duration::from_millis(150);

/// Blocks end when they are due: what one takes beside its slices,
/// the next one's slices are shorter by.
#[derive(Debug)]
pub(super) struct Pace {
    begun: Instant,
    /// From the end of a block to that of the next.
    block: Duration,
    /// When the block under way began.
    last: Duration,
    /// What its slices were given.
    given: Duration,
}

impl Pace {
    /// Of a plan that says how long a pair may take.
    pub(super) fn of(plan: &Plan) -> Option<Self> {
        let block = Duration::from_nanos(plan.bench.as_ref()?.pair_ns?);
        let begun = Instant::now();
        Some(Self { begun, block, last: Duration::ZERO, given: block.saturating_sub(UNKNOWN) })
    }

    /// Block `number` begins, from 0 on.
    pub(super) fn begins(&mut self, number: u32) {
        let now = self.begun.elapsed();
        self.given = given(self.block, number, [self.last, now], self.given);
        self.last = now;
    }

    /// What `members` of all that take turns in a block have of its time together.
    pub(super) fn share(&self, members: usize, all: usize) -> Duration {
        self.given.mul_f64(members as f64 / all.max(1) as f64)
    }
}

/// What the slices of block `number` have, where those of the block before were `given` so much,
/// and that one took the time between `ends`.
fn given(block: Duration, number: u32, [before, now]: [Duration; 2], given: Duration) -> Duration {
    let beside = if number == 0 { UNKNOWN } else { (now - before).saturating_sub(given) };
    let room = (block * (number + 1)).saturating_sub(now).saturating_sub(beside);
    room.clamp(block / 4, block)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of a second of which 300 ms are taken by other things
    /// than slices, and a first one that took two.
    #[test]
    fn a_run_ends_when_it_is_due_whatever_its_blocks_take_beside_their_slices() {
        let (block, beside) = (Duration::from_secs(1), Duration::from_millis(300));
        let (mut ends, mut slices) = ([Duration::ZERO; 2], block);
        for number in 0..20 {
            slices = given(block, number, ends, slices);
            let late = if number == 0 { block } else { Duration::ZERO };
            ends = [ends[1], ends[1] + slices + beside + late];
        }
        let [_, end] = ends;
        assert!(end.abs_diff(block * 20) < block / 10, "{end:?}");
    }
}
