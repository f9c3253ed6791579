// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a thing of one run stands to the same thing of other runs.
//!
//! Between runs the machine changes as a whole, and that is no news of any thing. So v is what a
//! thing takes less the mean of all others of its class that all runs have, in logarithms. What v
//! does from run to run is seen in a baseline of several: of R runs at separate times and n things
//! the interval of a new run's v less their mean is ± t σ √(1 + 1/R), t being Student's with (R −
//! 1)(n − 1) degrees of freedom, and σ the larger of the thing's own deviation between runs and
//! that of its class. One run instead of several shows nothing of that. Then σ is what was seen
//! elsewhere, [`Kind::provisional_sigma`], and each run's own interval is added in quadrature.

use super::slices::{Apart, mean, middle};
use super::statistics::student;
use std::collections::BTreeMap;

/// So many runs at separate times, or more, are a baseline that shows what differs from run to run.
pub const RUNS: usize = 5;

/// What things of a class do to their CPUs, by which they follow a change of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Both sides sleep in turn, on one core or across two, and nothing lies between.
    Blocking { one_core: bool },
    /// They spin, or wait between notifications.
    Other,
}

impl Kind {
    /// How much v of a thing differs from run to run beside what the scatter of its pairs shows, as
    /// a standard deviation, where the machine as a whole changed by `change`, in logarithms.
    ///
    /// Mechanisms do not all follow the machine alike: a share of its change is theirs. Nine
    /// surveys on a machine of two virtual CPUs (2026-11-27, within a quarter of an hour) met
    /// it as fast on one core but for one, which met it slower by 0.06; there the scatter of
    /// pairs explains all but 0.2 %. One of ten hours before met it slower by 0.15 to 0.21, and
    /// there was 1.6 to 1.8 %. A machine of 16 had 3.2 % at 0.51. Across two cores the nine had
    /// 1.6 % whether or not the machine had changed. Of things that spin or wait little is
    /// known: some 0.3 of the change was seen, and the rest is taken from those. Provisional,
    /// until twelve of several machines are stored.
    pub fn provisional_sigma(self, change: f64) -> f64 {
        let (least, share) = match self {
            Self::Blocking { one_core: true } => (0.002, 0.1),
            Self::Blocking { one_core: false } => (0.016, 0.04),
            Self::Other => (0.016, 0.3),
        };
        f64::hypot(least, share * change)
    }
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

/// How much longer each thing of `run` takes than in `baseline`, all intervals together failing in
/// the share `error` of runs; none of what has nothing beside it in both.
pub fn across(baseline: &[Run], run: &Run, kind: Kind, error: f64) -> Vec<Option<Apart>> {
    let things = run.things.len();
    let error = error / things.max(1) as f64;
    if baseline.len() < RUNS {
        return (0..things).map(|thing| two(baseline.last()?, run, thing, kind, error)).collect();
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
fn two(before: &Run, after: &Run, thing: usize, kind: Kind, error: f64) -> Option<Apart> {
    let of = |run: &Run| Apart::of(run.apart(thing), run.resemblance, error);
    let sigma = kind.provisional_sigma(after.shared()? - before.shared()?);
    let [before, after] = [of(before)?, of(after)?];
    let between = student(1.0 - error / 2.0, f64::INFINITY) * sigma * 2.0_f64.sqrt();
    Some(Apart { by: after.by - before.by, half: before.half.hypot(after.half).hypot(between) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slices::ERROR;

    fn normal(random: &mut fastrand::Rng) -> f64 {
        (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
    }

    /// What sets ten things apart from run to run.
    #[derive(Clone, Copy)]
    struct Noise {
        /// How much more or less than the machine each of them changes, as a share.
        follows: f64,
        /// What lasts as long as a run.
        lasting: f64,
    }

    const ONE_CORE: Kind = Kind::Blocking { one_core: true };

    /// A run of ten things in 20 pairs, each slower by its share of
    /// the machine's change, the first by `slower` besides.
    fn run(
        shares: &[f64],
        machine: f64,
        slower: f64,
        noise: Noise,
        random: &mut fastrand::Rng,
    ) -> Vec<ByPair> {
        let one = |thing: usize, random: &mut fastrand::Rng| {
            let longer = if thing == 0 { slower } else { 0.0 };
            let level = machine * shares[thing] + noise.lasting * normal(random) + longer;
            (0..20).map(|pair| (pair, level + 0.01 * normal(random))).collect()
        };
        (0..shares.len()).map(|thing| one(thing, random)).collect()
    }

    fn judged(runs: usize, slower: f64, noise: Noise, seed: u64) -> Vec<Apart> {
        let random = &mut fastrand::Rng::with_seed(seed);
        let shares: Vec<f64> = (0..10).map(|_| 1.0 + noise.follows * normal(random)).collect();
        let mut one = |slower: f64| run(&shares, 0.2 * normal(random), slower, noise, random);
        let before: Vec<Vec<ByPair>> = (0..runs).map(|_| one(0.0)).collect();
        let after = one(slower);
        fn of(levels: &[ByPair]) -> Run<'_> {
            Run { things: levels.iter().collect(), resemblance: 0.05 }
        }
        let baseline: Vec<Run> = before.iter().map(|levels| of(levels)).collect();
        across(&baseline, &of(&after), ONE_CORE, ERROR).into_iter().map(Option::unwrap).collect()
    }

    /// As seen: see [`Kind::provisional_sigma`], of two runs of each of which it is √½.
    const SEEN: Noise = Noise { follows: 0.12, lasting: 0.002 };
    const LASTING: Noise = Noise { follows: 0.0, lasting: 0.01 };

    #[test]
    fn a_machine_that_changed_as_a_whole_makes_nothing_slower_against_one_run_or_five() {
        for (runs, noise) in [(1, SEEN), (5, SEEN), (5, LASTING)] {
            let off = |apart: &Apart| apart.by.abs() > apart.half;
            let wrong = (0..200).filter(|seed| judged(runs, 0.0, noise, *seed).iter().any(off)).count();
            assert!(wrong <= 17, "{wrong} of 200 against {runs}");
        }
    }

    #[test]
    fn one_thing_that_takes_six_percent_longer_is_found_against_five_runs() {
        let found = |seed: &u64| {
            let judged = judged(5, 0.06, LASTING, *seed);
            judged[0].by > judged[0].half
        };
        let found = (0..200).filter(found).count();
        assert!(found >= 180, "{found} of 200");
    }

    #[test]
    fn between_two_runs_on_a_machine_that_stayed_as_it_was_three_percent_are_found() {
        let random = &mut fastrand::Rng::with_seed(1);
        let mut one = |slower: f64| run(&[1.0; 10], 0.0, slower, SEEN, random);
        let found = (0..100).filter(|_| {
            let [before, after] = [one(0.0), one(0.03)];
            let [before, after] =
                [&before, &after].map(|levels| Run { things: levels.iter().collect(), resemblance: 0.05 });
            let first = across(&[before], &after, ONE_CORE, ERROR)[0].unwrap();
            first.by > first.half
        });
        let found = found.count();
        assert!(found >= 90, "{found} of 100");
    }

    #[test]
    fn what_has_nothing_beside_it_is_held_against_no_other_run() {
        let levels: ByPair = (0..20).map(|pair| (pair, 1.0)).collect();
        let run = Run { things: vec![&levels], resemblance: 0.0 };
        assert_eq!(across(std::slice::from_ref(&run), &run, ONE_CORE, ERROR), [None]);
    }
}
