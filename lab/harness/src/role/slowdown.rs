// SPDX-License-Identifier: MIT OR Apache-2.0
//! A slowdown put into a ping-pong on purpose, half of it at each
//! side, as a slower kernel would be.
//!
//! On one core the scheduler decides by how long each side ran which of them a wake puts first: all
//! of the slowdown at one side changed that, and with it more than it was meant to.

use std::cmp::Ordering::{Equal, Greater, Less};

use doorbell_machine::clock::Now;
use doorbell_results::machine::clock::{Clock, Ticks};

#[derive(Debug)]
pub(super) struct Slowdown {
    clock: Clock,
    ppm: u64,
    /// What putting in nothing takes: a reading of the clock before the loop, and half of one for
    /// where in the loop the time is up.
    overhead: Ticks,
    /// When it was put in last.
    last: Option<Ticks>,
    /// What a round takes of late, picoseconds: a running median, which goes up by a thirty-second
    /// where a round was longer and down by as much where it was shorter. A share of it slows a
    /// machine that is slow just now by as much as one that is fast.
    typical_ps: u64,
}

impl Slowdown {
    /// Half of `ppm` parts per million of a round.
    pub(super) fn half_of(ppm: u32, clock: Clock) -> Self {
        Self { clock, ppm: ppm.into(), overhead: reading(clock) * 3 / 2, last: None, typical_ps: 0 }
    }

    /// Takes its time; called once a round, always at the same place in it.
    #[inline]
    pub(super) fn put_in(&mut self) {
        let now = self.clock.now();
        if let Some(last) = self.last {
            self.typical_ps = follow(self.typical_ps, self.clock.ps(now.saturating_sub(last)));
        }
        self.last = Some(now);
        // Of what it takes with the slowdown, what it took without, and half of the share of that.
        let delay_ps = self.typical_ps * self.ppm / (1_000_000 + self.ppm) / 2;
        let due = now.saturating_add(self.clock.ticks_of_ps(delay_ps)).saturating_sub(self.overhead);
        while self.clock.now() < due {
            std::hint::spin_loop();
        }
    }
}

/// What a reading of the clock takes: the least of some, each over
/// sixteen readings, since one may be less than a tick.
fn reading(clock: Clock) -> Ticks {
    let sixteen = |_| {
        let before = clock.now();
        let last = (0..16).fold(before, |_, _| clock.now());
        last.saturating_sub(before)
    };
    (0..100).map(sixteen).min().unwrap_or(0) / 16
}

fn follow(typical_ps: u64, round_ps: u64) -> u64 {
    match typical_ps.cmp(&round_ps) {
        _ if typical_ps == 0 => round_ps,
        Less => typical_ps + typical_ps / 32,
        Equal => typical_ps,
        Greater => typical_ps - typical_ps / 32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typical_follows_the_median_and_no_outlier() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut typical = 0;
        for round in 0..10_000_u64 {
            let round_ps = if round % 10 == 0 { 90_000_000 } else { random.u64(4_000_000..=6_000_000) };
            typical = follow(typical, round_ps);
        }
        assert!((4_500_000..=5_900_000).contains(&typical), "{typical}");
    }
}
