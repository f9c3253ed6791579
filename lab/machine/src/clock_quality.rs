// SPDX-License-Identifier: MIT OR Apache-2.0
//! How good the clock of a run is: its grid, its own cost, how far it
//! differs between cores, how fast it drifts.

use super::clock::{Bracket, Now};
use super::pinned::both;
use doorbell_results::machine::clock::{Clock, Ticks};
use doorbell_results::machine::clock_quality::*;
use doorbell_results::machine::topology::Topology;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

/// Measures everything but the drift, on the calling thread and on
/// short-lived ones; takes some 5 ms.
pub fn measure(clock: Clock, topology: &Topology) -> ClockQuality {
    const READINGS: usize = 20_000;
    const BATCH: u64 = 100;
    const BATCHES: usize = 50;
    let mut readings = Vec::with_capacity(READINGS);
    for _ in 0..READINGS {
        readings.push(clock.now_awake());
    }
    let mut batches: Vec<u64> = (0..BATCHES)
        .map(|_| {
            let before = clock.now_awake();
            for _ in 0..BATCH {
                std::hint::black_box(clock.now_awake());
            }
            clock.ps(clock.now_awake().saturating_sub(before)) / (BATCH + 1)
        })
        .collect();
    batches.sort_unstable();
    let steps = steps(&readings);
    let mut frequent: Vec<Step> =
        steps.iter().map(|(ticks, count)| Step { ps: clock.ps(*ticks), count: *count }).collect();
    frequent.sort_by_key(|step| (std::cmp::Reverse(step.count), step.ps));
    frequent.truncate(8);
    let pairs = topology.pairs();
    let cpus = pairs.iter().filter_map(|pair| pair.cpus).filter(|[a, b]| a != b);
    ClockQuality {
        grid_ps: grid(&steps).map_or(0, |ticks| (ticks * ps_per_tick(clock)).round() as u64).max(1),
        smallest_step_ps: steps.keys().find(|ticks| **ticks > 0).map_or(0, |ticks| clock.ps(*ticks)),
        steps: frequent,
        cost_ps: batches[BATCHES / 2],
        drift_ppm: None,
        drift_resolution_ppm: None,
        // A pair whose threads cannot be pinned is one that the run will not be able to use either.
        skews: cpus.filter_map(|cpus| skew(clock, cpus).ok()).collect(),
    }
}

/// Adds the drift since `start`.
pub fn drifted(quality: &mut ClockQuality, start: DriftStart) {
    let (ran_ns, raw_ns, width_ns) = start.until_now();
    if raw_ns > 0 {
        quality.drift_ppm = Some((ran_ns as f64 - raw_ns as f64) / raw_ns as f64 * 1e6);
        quality.drift_resolution_ppm = Some(width_ns as f64 / raw_ns as f64 * 1e6);
    }
}

fn ps_per_tick(clock: Clock) -> f64 {
    clock.ps_per_tick_q32 as f64 / (1_u64 << 32) as f64
}

/// How often each difference of successive readings occurred, in ticks.
fn steps(readings: &[Ticks]) -> BTreeMap<Ticks, u64> {
    let mut steps = BTreeMap::new();
    for pair in readings.windows(2) {
        *steps.entry(pair[1].saturating_sub(pair[0])).or_default() += 1;
    }
    steps
}

/// The grid of the steps, in ticks: the smallest distance between two
/// that are seen again and again.
///
/// A grid that is no whole number of ticks, such as 22.5, shows as pairs
/// of neighbours (22 and 23, 45 and 46 …): two neighbours are one line
/// of the grid, three in a row are a clock that resolves single ticks.
fn grid(steps: &BTreeMap<Ticks, u64>) -> Option<f64> {
    let total: u64 = steps.values().sum();
    // Rarer steps are interruptions: of any length, on no grid.
    let often = (total / 200).max(2);
    let mut lines: Vec<(Ticks, Ticks)> = Vec::new();
    for ticks in steps.iter().filter(|(_, count)| **count >= often).map(|(ticks, _)| *ticks) {
        match lines.last_mut() {
            Some((first, last)) if *last + 1 == ticks => {
                if *last > *first {
                    return Some(1.0);
                }
                *last = ticks;
            }
            _ => lines.push((ticks, ticks)),
        }
    }
    let middle = |(first, last): &(Ticks, Ticks)| (*first + *last) as f64 / 2.0;
    let gaps = lines.windows(2).map(|pair| middle(&pair[1]) - middle(&pair[0]));
    // One line alone: the grid may be finer than the cost of a reading lets see, but it is not coarser.
    gaps.reduce(f64::min).or_else(|| lines.first().map(middle).filter(|ticks| *ticks > 0.0))
}

/// How far the second CPU's clock is ahead: two pinned threads exchange stamps; takes
/// some 0.3 ms, and up to 60 ms on CPUs that others keep busy.
///
/// A stamp taken by the second between two by the first bounds the skew from both sides: `first₁ +
/// skew ≤ second ≤ first₂ + skew`. All rounds together bound it by the tightest of each side, at
/// best half a round trip of a cache line.
fn skew(clock: Clock, cpus: [u32; 2]) -> io::Result<Skew> {
    const ROUNDS: u64 = 1000;
    const LONGEST: Duration = Duration::from_millis(3);
    // Where the bounds are still farther apart than this, the threads
    // were kept from running, and are given the time of some slices of a
    // scheduler: beside a busy program the skew once came out as 21 ms.
    const WIDE: Duration = Duration::from_micros(1);
    const LONGEST_IF_WIDE: Duration = Duration::from_millis(60);
    const OVER: u64 = u64::MAX;
    let (asked, answered, stamp) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let first = || {
        let (mut low, mut high) = (i64::MIN, i64::MAX);
        let [until, until_wide] =
            [LONGEST, LONGEST_IF_WIDE].map(|longest| clock.now().saturating_add(clock.ticks(longest)));
        let is_wide = |low: i64, high: i64| high.saturating_sub(low) > clock.ticks(WIDE) as i64;
        let mut round = 0;
        while round == 0
            || (round < ROUNDS && clock.now() < until)
            || (is_wide(low, high) && clock.now() < until_wide)
        {
            round += 1;
            let before = clock.now_awake();
            asked.store(round, Release);
            // Pairs with the Release store below: the stamp is the one of this round.
            while answered.load(Acquire) != round {
                std::hint::spin_loop();
            }
            let after = clock.now_awake();
            let between = stamp.load(Relaxed);
            low = low.max(between.wrapping_sub(after) as i64);
            high = high.min(between.wrapping_sub(before) as i64);
        }
        asked.store(OVER, Release);
        (low, high)
    };
    let second = || {
        let mut seen = 0;
        loop {
            let round = asked.load(Acquire);
            if round == OVER {
                break;
            }
            if round == seen {
                std::hint::spin_loop();
                continue;
            }
            seen = round;
            stamp.store(clock.now_awake(), Relaxed);
            answered.store(round, Release);
        }
    };
    let ((low, high), ()) = both(cpus, first, second)?;
    let ns = |ticks: i64| clock.ps(ticks.unsigned_abs()) as f64 / 1000.0 * ticks.signum() as f64;
    let (low, high) = (ns(low), ns(high));
    // Bounds that cross mean that the skew changed while it was measured: by as much as they cross.
    Ok(Skew { cpus, offset_ns: (low + high) / 2.0, bound_ns: ((high - low) / 2.0).abs() })
}

/// The clock beside the raw monotonic clock, at the start of a
/// stretch over which its drift is measured.
#[derive(Debug, Clone, Copy)]
pub struct DriftStart {
    clock: Clock,
    bracket: Bracket,
}

impl DriftStart {
    pub fn now(clock: Clock) -> Self {
        Self { clock, bracket: Bracket::narrowest(|| clock.now_awake()) }
    }

    /// What the clock made of the stretch, what the raw clock made of it, and by how much the first
    /// may be off, in nanoseconds.
    fn until_now(self) -> (u64, u64, u64) {
        let end = Bracket::narrowest(|| self.clock.now_awake());
        let ran = end.middle().saturating_sub(self.bracket.middle());
        let width = (end.width + self.bracket.width) / 2;
        (
            self.clock.ps(ran) / 1000,
            end.raw_ns.saturating_sub(self.bracket.raw_ns),
            self.clock.ps(width) / 1000,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::calibrate;
    use super::*;

    fn grid_of(steps: &[(Ticks, u64)]) -> Option<f64> {
        grid(&steps.iter().copied().collect())
    }

    #[test]
    fn a_clock_of_single_ticks_has_a_grid_of_one() {
        assert_eq!(grid_of(&[(38, 500), (39, 300), (40, 400), (9000, 1)]), Some(1.0));
    }

    #[test]
    fn a_grid_between_whole_ticks_is_found() {
        assert_eq!(grid_of(&[(22, 500), (23, 500), (45, 900), (67, 300), (68, 300), (5000, 1)]), Some(22.5));
    }

    #[test]
    fn adding_seconds_and_nanoseconds_in_a_double_shows_its_grid() {
        let times: Vec<Ticks> =
            (0..10_000_u64).map(|i| (1_700_000_000.0 * 1e9 + i as f64 * 30.0) as u64).collect();
        assert_eq!(grid(&steps(&times)), Some(256.0));
    }

    #[test]
    fn one_lonely_step_is_an_upper_bound_of_the_grid() {
        assert_eq!(grid_of(&[(40, 1000)]), Some(40.0));
        assert_eq!(grid_of(&[]), None);
    }

    #[test]
    fn the_live_clock_has_a_cost_and_a_bounded_skew_between_any_two_cpus() {
        let clock = calibrate(Duration::from_millis(5));
        let topology = crate::system::topology();
        let start = DriftStart::now(clock);
        let mut quality = measure(clock, &topology);
        drifted(&mut quality, start);
        assert!(quality.cost_ps > 0 && quality.smallest_step_ps > 0 && quality.grid_ps > 0);
        assert!(quality.drift_ppm.unwrap().is_finite());
        assert_eq!(quality.skews.is_empty(), topology.two_cores().is_none());
        assert!(quality.skews.iter().all(|skew| skew.bound_ns.is_finite() && skew.bound_ns >= 0.0));
    }
}
