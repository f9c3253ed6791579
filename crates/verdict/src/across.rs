// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a thing of one run stands to the same thing of other runs.
//!
//! Between runs the machine changes as a whole, and that is no news of any thing. So v is what a thing takes less the mean of all others of its
//! class that all runs have, in logarithms. What v does from run to run is seen in a baseline of several: of R runs at separate times and n things the
//! interval of a new run's v less their mean is ± t σ √(1 + 1/R), t being Student's with (R − 1)(n − 1) degrees of freedom, and σ the larger of the
//! thing's own deviation between runs and that of its class. One run instead of several shows nothing of that. Then σ is what was seen elsewhere,
//! [`provisional_sigma`], and each run's own interval is added in quadrature.

use super::slices::{Apart, mean, middle};
use super::statistics::student;
use std::collections::BTreeMap;

/// So many runs at separate times, or more, are a baseline that shows what differs from run to run.
pub const RUNS: usize = 5;

/// How much v differs between two runs, as a standard deviation, as three stored surveys of one machine of 16 virtual CPUs had it: provisional, until
/// twelve of several machines are stored.
pub fn provisional_sigma(one_core: bool) -> f64 {
    if one_core { 0.011 } else { 0.004 }
}

/// A thing's D by pair, and how much pairs resemble each other: see [`slices`](super::slices).
pub type ByPair = BTreeMap<u32, f64>;

/// One run's things of one class, the same in the same order in all runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Run<'a> {
    pub things: Vec<&'a ByPair>,
    /// How much its pairs resemble the one before.
    pub resemblance: f64,
}

impl Run<'_> {
    /// v of a thing, pair by pair; none where it has no others beside it.
    fn apart(&self, thing: usize) -> Vec<f64> {
        let others = |pair: &u32| {
            let others = self.things.iter().enumerate().filter(|(other, _)| *other != thing);
            let levels: Option<Vec<f64>> = others.map(|(_, levels)| levels.get(pair).copied()).collect();
            mean(levels?.into_iter())
        };
        self.things[thing].iter().filter_map(|(pair, level)| Some(level - others(pair)?)).collect()
    }

    fn v(&self, thing: usize) -> Option<f64> {
        middle(&mut self.apart(thing))
    }

    /// What all things of the class together take.
    fn shared(&self) -> Option<f64> {
        mean(self.things.iter().flat_map(|levels| levels.values().copied()))
    }
}

/// How much longer each thing of `run` takes than in `baseline`, all intervals together failing in the share `error` of runs; none of what has
/// nothing beside it in both.
pub fn across(baseline: &[Run], run: &Run, one_core: bool, error: f64) -> Vec<Option<Apart>> {
    let things = run.things.len();
    let error = error / things.max(1) as f64;
    if baseline.len() < RUNS {
        return (0..things).map(|thing| two(baseline.last()?, run, thing, one_core, error)).collect();
    }
    let runs = baseline.len() as f64;
    let deviations: Vec<Option<(f64, f64)>> = (0..things)
        .map(|thing| {
            let v: Vec<f64> = baseline.iter().map(|run| run.v(thing)).collect::<Option<_>>()?;
            let middle = mean(v.iter().copied())?;
            Some((middle, v.iter().map(|v| (v - middle).powi(2)).sum::<f64>() / (runs - 1.0)))
        })
        .collect();
    let known: Vec<f64> = deviations.iter().flatten().map(|(_, variance)| *variance).collect();
    let pooled = mean(known.iter().copied()).unwrap_or(0.0);
    let freedom = (runs - 1.0) * (known.len() as f64 - 1.0);
    let t = student(1.0 - error / 2.0, freedom);
    (0..things)
        .map(|thing| {
            let (middle, own) = deviations[thing]?;
            let half = t * own.max(pooled).sqrt() * (1.0 + 1.0 / runs).sqrt();
            Some(Apart { by: run.v(thing)? - middle, half })
        })
        .collect()
}

/// Against one run.
fn two(before: &Run, after: &Run, thing: usize, one_core: bool, error: f64) -> Option<Apart> {
    let of = |run: &Run| Apart::of(run.apart(thing), run.resemblance, error);
    let [before, after] = [of(before)?, of(after)?];
    let between = student(1.0 - error / 2.0, f64::INFINITY) * provisional_sigma(one_core) * 2.0_f64.sqrt();
    Some(Apart { by: after.by - before.by, half: before.half.hypot(after.half).hypot(between) })
}

/// How much longer all things of the class take than in the last run of `baseline`: the machine's own change, which decides nothing.
pub fn shared(baseline: &[Run], run: &Run) -> Option<f64> {
    Some(run.shared()? - baseline.last()?.shared()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slices::ERROR;

    fn normal(random: &mut fastrand::Rng) -> f64 {
        (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
    }

    /// A run of ten things in 20 pairs on a machine that is slower by `machine`, the first of which takes `slower` longer; what lasts as long as a run
    /// differs by 1 %.
    fn run(machine: f64, slower: f64, random: &mut fastrand::Rng) -> Vec<ByPair> {
        let one = |thing: usize, random: &mut fastrand::Rng| {
            let level = machine + 0.01 * normal(random) + if thing == 0 { slower } else { 0.0 };
            (0..20).map(|pair| (pair, level + 0.01 * normal(random))).collect()
        };
        (0..10).map(|thing| one(thing, random)).collect()
    }

    fn judged(runs: usize, slower: f64, seed: u64) -> Vec<Apart> {
        let random = &mut fastrand::Rng::with_seed(seed);
        let before: Vec<Vec<ByPair>> = (0..runs).map(|_| run(0.2 * normal(random), 0.0, random)).collect();
        let after = run(0.2 * normal(random), slower, random);
        fn of(levels: &[ByPair]) -> Run<'_> {
            Run { things: levels.iter().collect(), resemblance: 0.05 }
        }
        let baseline: Vec<Run> = before.iter().map(|levels| of(levels)).collect();
        across(&baseline, &of(&after), true, ERROR).into_iter().map(Option::unwrap).collect()
    }

    #[test]
    fn a_machine_that_changed_as_a_whole_makes_nothing_slower_against_one_run_or_five() {
        for runs in [1, 5] {
            let wrong = |seed: &u64| judged(runs, 0.0, *seed).iter().any(|apart| apart.by.abs() > apart.half);
            let wrong = (0..200).filter(wrong).count();
            assert!(wrong <= 17, "{wrong} of 200 against {runs}");
        }
    }

    #[test]
    fn one_thing_that_takes_six_percent_longer_is_found_against_five_runs() {
        let found = |seed: &u64| {
            let judged = judged(5, 0.06, *seed);
            judged[0].by > judged[0].half
        };
        let found = (0..200).filter(found).count();
        assert!(found >= 180, "{found} of 200");
    }

    #[test]
    fn what_has_nothing_beside_it_is_held_against_no_other_run() {
        let levels: ByPair = (0..20).map(|pair| (pair, 1.0)).collect();
        let run = Run { things: vec![&levels], resemblance: 0.0 };
        assert_eq!(across(std::slice::from_ref(&run), &run, true, ERROR), [None]);
    }
}
