// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often the judge is wrong about equal things that had trials of their own, block by block,
//! and whether it finds 5 %, in simulated runs.
//!
//! A test fails where more are wrong than one of a hundred series does whose true rate is 5 %.
//! `DOORBELL_SIMULATED_RUNS=200` makes series of 200 runs and of everything in the grids, an hour
//! or two on one core; `--nocapture` shows what came of each.

use doorbell_verdict::ratio::Standing;
use doorbell_verdict::slices::{ERROR, Levels, Sample};
use doorbell_verdict::statistics::clopper_pearson;

/// How one trial's time comes about, in logarithms.
#[derive(Debug, Clone, Copy)]
enum Noise {
    /// Independent trials at two speeds, 1.00 and 1.35.
    TwoSpeeds { slow: f64 },
    /// Of each thing normal noise of 2 %, each block of which resembles the one before.
    Resembling { correlation: f64 },
    /// Of each thing two speeds that last from block to block.
    LastingSpeeds { slow: f64, correlation: f64 },
    /// Two speeds of one machine, under which all things run one
    /// after another; the correlation is from block to block.
    SharedSpeeds { slow: f64, correlation: f64 },
}

const OWN: f64 = 0.01;
const SLOWER: f64 = 1.35;

fn normal(random: &mut fastrand::Rng) -> f64 {
    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
}

fn run(noise: Noise, things: usize, blocks: u32, seed: u64) -> Vec<Sample> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut samples = vec![Sample::new(); things];
    let mut states: Vec<f64> = (0..things).map(|_| normal(&mut random)).collect();
    let slow_share = match noise {
        Noise::TwoSpeeds { slow } | Noise::LastingSpeeds { slow, .. } | Noise::SharedSpeeds { slow, .. } => {
            slow
        }
        Noise::Resembling { .. } => 0.0,
    };
    let mut slow: Vec<bool> = (0..things).map(|_| random.f64() < slow_share).collect();
    for block in 0..blocks {
        let mut order: Vec<usize> = (0..things).collect();
        random.shuffle(&mut order);
        for thing in order {
            // Whether what was before is left behind, and which state that is about.
            let (state, anew) = match noise {
                Noise::TwoSpeeds { .. } | Noise::Resembling { .. } => (thing, true),
                Noise::LastingSpeeds { correlation, .. } => (thing, random.f64() > correlation),
                Noise::SharedSpeeds { correlation, .. } => {
                    (0, random.f64() > correlation.powf(1.0 / things as f64))
                }
            };
            if anew {
                slow[state] = random.f64() < slow_share;
            }
            let value = if let Noise::Resembling { correlation } = noise {
                let news = (1.0 - correlation * correlation).sqrt();
                states[thing] = correlation * states[thing] + news * normal(&mut random);
                2.0 * OWN * states[thing]
            } else {
                OWN * normal(&mut random) + if slow[state] { SLOWER.ln() } else { 0.0 }
            };
            samples[thing].insert(block, value.exp());
        }
    }
    samples
}

fn until(samples: &[Sample], block: u32) -> Vec<Sample> {
    samples
        .iter()
        .map(|sample| sample.range(..block).map(|(block, value)| (*block, *value)).collect())
        .collect()
}

/// Whether any of equal things is called different at any look.
fn differs(samples: &[Sample], looks: &[u32]) -> bool {
    let error = ERROR / looks.len() as f64;
    looks.iter().any(|look| {
        let seen = until(samples, *look);
        let things = 0..seen.len();
        let pairs: Vec<(usize, usize)> = things.flat_map(|b| (0..b).map(move |a| (a, b))).collect();
        let ratios = Levels::of_blocks(&seen).ratios(&pairs, error);
        assert!(ratios.iter().all(Option::is_some), "{look} blocks are enough to judge by");
        ratios.iter().flatten().any(|ratio| ratio.low > 1.0 || ratio.high < 1.0)
    })
}

/// The length of a series where the grids are asked for.
fn asked() -> Option<u64> {
    let runs = std::env::var("DOORBELL_SIMULATED_RUNS").ok()?;
    Some(runs.parse().expect("DOORBELL_SIMULATED_RUNS is a number of runs"))
}

/// Makes a series of runs, says how many were wrong, and gives the
/// share that is at least wrong, sure in 99 of 100.
fn seen(noise: Noise, things: usize, looks: &[u32], runs: u64) -> f64 {
    let runs = asked().unwrap_or(runs);
    let last = *looks.last().expect("a run is looked at");
    let wrong = (0..runs).filter(|seed| differs(&run(noise, things, last, *seed), looks)).count() as f64;
    let (at_least, at_most) = clopper_pearson(runs as f64, wrong, 0.99);
    println!(
        "{noise:?}, {things} things, looks {looks:?}: {wrong} of {runs} wrong, {:.1} to {:.1} %",
        at_least * 100.0,
        at_most * 100.0
    );
    at_least
}

/// As [`seen`], and fails where that shows a rate above 5 %.
fn series(noise: Noise, things: usize, looks: &[u32], runs: u64) {
    let at_least = seen(noise, things, looks, runs);
    assert!(at_least <= ERROR, "{noise:?}, {things} things, looks {looks:?}: wrong in {at_least} at least");
}

const THREE: &[u32] = &[10, 20, 40];

/// By the median of all pairs' means it was 70 of 200 of twelve things at 22 %.
#[test]
fn equal_things_at_two_speeds_are_not_called_different() {
    if asked().is_some() {
        for things in [12, 2, 4, 28] {
            for looks in [THREE, &[9]] {
                for slow in [0.3, 0.05, 0.15, 0.22, 0.45, 0.6] {
                    series(Noise::TwoSpeeds { slow }, things, looks, 0);
                }
            }
        }
    } else {
        series(Noise::TwoSpeeds { slow: 0.22 }, 12, THREE, 40);
        series(Noise::TwoSpeeds { slow: 0.4 }, 12, &[20], 40);
        series(Noise::TwoSpeeds { slow: 0.3 }, 2, THREE, 60);
        series(Noise::TwoSpeeds { slow: 0.15 }, 28, &[9], 20);
    }
}

/// Where blocks counted as independent it was 10 to 25 of 100.
#[test]
fn equal_things_whose_blocks_resemble_the_one_before_are_not_called_different() {
    if asked().is_some() {
        for correlation in [0.3, 0.6] {
            for things in [2, 4, 12] {
                for looks in [THREE, &[9], &[40]] {
                    series(Noise::Resembling { correlation }, things, looks, 0);
                    series(Noise::SharedSpeeds { slow: 0.3, correlation }, things, looks, 0);
                    // Ten blocks of which each thing may have met one
                    // speed only: no bar, the book has what comes of it.
                    seen(Noise::LastingSpeeds { slow: 0.3, correlation }, things, looks, 0);
                }
            }
        }
    } else {
        for correlation in [0.3, 0.6] {
            series(Noise::Resembling { correlation }, 2, THREE, 80);
            series(Noise::Resembling { correlation }, 4, &[20], 40);
            series(Noise::LastingSpeeds { slow: 0.3, correlation }, 2, &[40], 60);
            series(Noise::SharedSpeeds { slow: 0.3, correlation }, 4, &[20], 40);
        }
    }
}

#[test]
fn five_percent_is_found_within_three_looks_through_blocks_that_spread_by_two() {
    let runs = asked().unwrap_or(60);
    let found = (0..runs).filter(|seed| {
        // Normal noise of 2 %, without resemblance.
        let mut samples = run(Noise::Resembling { correlation: 0.0 }, 2, 40, *seed);
        samples[1].values_mut().for_each(|value| *value *= 1.05);
        THREE.iter().any(|look| {
            let seen = until(&samples, *look);
            let ratio = Levels::of_blocks(&seen).ratios(&[(0, 1)], ERROR / 3.0)[0];
            ratio.is_some_and(|ratio| ratio.standing(0.025) == Standing::Slower)
        })
    });
    let found = found.count() as f64;
    println!("5 % of things that spread by 2 %: found in {found} of {runs}");
    assert!(clopper_pearson(runs as f64, found, 0.99).1 >= 0.95, "{found} of {runs}");
    assert!(found >= 0.9 * runs as f64, "{found} of {runs}");
}
