// SPDX-License-Identifier: MIT OR Apache-2.0
//! The gaps between the due times of notifications.

use std::time::Duration;

use doorbell_results::configuration::Configuration;
use doorbell_results::machine::clock::{Clock, Ticks};
use doorbell_results::schedule::Schedule;

pub(super) struct Gaps {
    kind: Kind,
    /// Every trial has the same gaps, so that what is compared was asked for the same.
    random: fastrand::Rng,
}

enum Kind {
    Even(Ticks),
    /// In the order of the schedule.
    Recorded(Vec<Ticks>, usize),
    /// Gaps by length, at even places of all of them: no logarithm is
    /// taken between two notifications.
    Drawn(Vec<Ticks>),
}

/// Gaps of a law that are worked out beforehand.
const PLACES: u32 = 4096;

impl Gaps {
    pub(super) fn of(configuration: &Configuration, clock: Clock) -> Self {
        let mean_ns = configuration.pattern.gap_ns();
        let ticks = |ns: u64| clock.ticks(Duration::from_nanos(ns));
        let kind = match &configuration.schedule {
            None => Kind::Even(ticks(mean_ns)),
            Some(Schedule::Recorded { gaps_ns }) => {
                Kind::Recorded(gaps_ns.iter().map(|ns| ticks(*ns)).collect(), 0)
            }
            Some(law) => {
                let steepness = law.steepness(mean_ns);
                let place = |number: u32| (f64::from(number) + 0.5) / f64::from(PLACES);
                let gap = |number| ticks(law.gap_ns(mean_ns, steepness, place(number)) as u64);
                Kind::Drawn((0..PLACES).map(gap).collect())
            }
        };
        Self { kind, random: fastrand::Rng::with_seed(1) }
    }

    /// The next one, ticks.
    #[inline]
    pub(super) fn following(&mut self) -> Ticks {
        match &mut self.kind {
            Kind::Even(gap) => *gap,
            Kind::Recorded(gaps, place) => {
                let gap = gaps.get(*place).copied().unwrap_or(0);
                *place = if *place + 1 < gaps.len() { *place + 1 } else { 0 };
                gap
            }
            Kind::Drawn(gaps) => gaps[self.random.usize(..gaps.len())],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::Pattern;
    use doorbell_results::record::sample;

    fn gaps(schedule: Option<Schedule>, count: usize) -> Vec<Ticks> {
        let configuration = Configuration {
            pattern: Pattern::OpenLoop { gap_ns: 50_000 },
            schedule,
            ..sample::configuration("futex")
        };
        let mut gaps = Gaps::of(&configuration, Clock::MONOTONIC);
        (0..count).map(|_| gaps.following()).collect()
    }

    #[test]
    fn gaps_are_even_recorded_or_drawn_and_the_same_for_every_trial() {
        assert_eq!(gaps(None, 3), [50_000; 3]);
        let recorded = Schedule::Recorded { gaps_ns: vec![10, 20, 30] };
        assert_eq!(gaps(Some(recorded), 5), [10, 20, 30, 10, 20]);
        let drawn = gaps(Some(Schedule::Exponential), 20_000);
        let mean = drawn.iter().sum::<u64>() as f64 / 20_000.0;
        assert!((mean / 50_000.0 - 1.0).abs() < 0.05, "{mean}");
        assert!(drawn.iter().any(|gap| *gap > 200_000) && drawn.iter().any(|gap| *gap < 1_000));
        assert_eq!(drawn, gaps(Some(Schedule::Exponential), 20_000));
    }
}
