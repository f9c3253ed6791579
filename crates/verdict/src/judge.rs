// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether one thing takes longer than another, by how much, and how sure that is: every verdict of this project that compares
//! times is made here.
//!
//! SUMMARY: given are figures by block, of things measured beside each other in one run ([`Family::alternated`]) or of pairs of
//! runs ([`Family::apart`]). What comes out is the ratio of any two with an interval, such that **all intervals asked for hold
//! together** in 95 of 100 runs, and how the one [stands](super::ratio::Standing) to the other. The ratio is that of the two [levels](Family::level), so that
//! the figure in a sentence is the figure in the table.
//!
//! DETAILS: everything is done in logarithms.
//! - The level of a sample is its trimmed mean, without the tenth of its values at each end, and its standard error is the one that belongs to it
//!   (J. W. Tukey, D. H. McLaughlin, *Less vulnerable confidence and significance procedures for location based on a single sample*, Sankhyā A 25,
//!   1963; K. K. Yuen, *The two-sample trimmed t for unequal population variances*, Biometrika 61, 1974). So the tenth of many blocks may have met something
//!   else. Where a host has two speeds the level moves a little with each slow block, and its standard error knows of it. The median of the means of all
//!   pairs, which was taken before, leapt from the one speed to the middle of both where 29 % of the blocks were slow, and nothing in its error said so:
//!   70 of 200 simulated runs of twelve equal things called some different.
//! - What the blocks of one run share is taken out: in each block the median of what its samples have above their levels (one
//!   step of J. W. Tukey's median polish, *Exploratory Data Analysis*, 1977).
//! - The statistic of a pair is the difference of its levels over its standard error. How large the greatest of all pairs becomes by
//!   chance alone is seen from the run's own noise: residuals over their sample's spread change places at random, within their
//!   block, or between the two runs of a pair, and the greatest statistic is taken anew (P. H. Westfall, S. S. Young,
//!   *Resampling-Based Multiple Testing*, 1993; that a permuted statistic over its standard error stays valid where spreads differ:
//!   E. Chung, J. P. Romano, *Exact and asymptotically robust permutation tests*, Annals of Statistics 41, 2013). So the number of things
//!   compared costs no more than their noise makes it cost, and no shape of noise is assumed.
//! - Of few blocks the spread of a sample is known badly, and the smallest of many is too small by chance. None counts as less than half
//!   the median spread of its family. And residuals are nearer to their sample's own level than to the true one, so that six or seven
//!   permuted blocks of two things make intervals that are too short: none is shorter than normal noise would make it in a run of the same blocks, by
//!   which W. S. Gosset (*The probable error of a mean*, Biometrika 6, 1908) is had back for few things.
//! - Blocks that resemble the one before tell less than as many independent ones. How much each resembles the next is measured in all samples of the
//!   family together; what few blocks hide of it is added (M. G. Kendall, *Note on bias in the estimation of autocorrelation*, Biometrika 41, 1954), and
//!   its standard error. The normal noise above is drawn with that resemblance; permuted noise, which has lost it, counts for as much more as a
//!   mean of such blocks is less exact (M. S. Bartlett, *Some aspects of the time-correlation problem*, Journal of the Royal Statistical Society 98, 1935).
//!
//! `doorbell study --noise` says what this gives on the noise of stored runs.

use std::collections::BTreeMap;

use super::ratio::Ratio;
use doorbell_results::plan::Plan;

/// The chance that some interval of a family does not hold.
pub const ERROR: f64 = 0.05;

/// The error that one judgement of a run of `plan` may have: a run that ends as soon as it is decided is judged at every look, and each could
/// be wrong, so that they share it evenly (C. E. Bonferroni, 1936; the looks are planned beforehand and few).
pub fn error(plan: &Plan) -> f64 {
    ERROR / plan.looks.len().max(1) as f64
}

/// Fewer blocks than this are no evidence.
pub const FEWEST: usize = doorbell_results::plan::FEWEST_BLOCKS as usize;

/// The share of the error that permuted residuals get, the rest being for what those of six to ten blocks do not show.
const SPENT: f64 = 0.4;

/// Draws from which the greatest statistic's distribution is taken.
const DRAWS: usize = 999;

/// The share of a sample's values that its level leaves out at each end.
const TRIMMED: f64 = 0.1;

/// No more than this is believed of how much a block resembles the one before: of more, no run of some blocks can tell anything.
const MOST_RESEMBLANCE: f64 = 0.9;

/// No sample's spread counts as less than this share of the median one.
const LEAST_SPREAD: f64 = 0.5;

/// How many times as long the interval is between a multiple of the reference and what was taken as measured. The one follows the machine's
/// speed through the middle of the run alone, the other in every block; and nine blocks may all have met one of two speeds. Of 3,000 surveys
/// of equal things, made of recorded noise, 141 called something different, 6 of them things that are alike in this; with it 15 do.
const UNLIKE: f64 = 1.5;

/// A figure above 0 for each block that has one.
pub type Sample = BTreeMap<u32, f64>;

/// One block's value of one sample, without its level and what its block shares.
#[derive(Debug, Clone, Copy)]
struct Residual {
    sample: usize,
    /// It may change places with those of the same group.
    group: u32,
    value: f64,
}

/// Samples that are judged together.
#[derive(Debug)]
pub struct Family {
    /// Whether what the samples of a block share was taken out.
    alternated: bool,
    /// Each sample's level and the square of its standard error, in logarithms; none of too few blocks to judge by.
    levels: Vec<Option<f64>>,
    errors: Vec<Option<f64>>,
    counts: Vec<usize>,
    residuals: Vec<Residual>,
    /// The correlation of what is left of a block with what is left of the next.
    resemblance: f64,
    /// At least so many values are left out of a level at each end.
    out: usize,
    /// Of each sample whether it is of multiples of a reference; empty where all are alike.
    referred: Vec<bool>,
}

impl Family {
    /// Things of one run that alternated within each block.
    pub fn alternated(samples: &[Sample]) -> Self {
        let mut samples: Vec<Vec<(u32, f64)>> =
            samples.iter().map(|sample| logarithms(sample).into_iter().collect()).collect();
        number(&mut samples);
        take_out_shared(&mut samples);
        Self::of(&samples, true, true)
    }

    /// Pairs of runs; the samples of pair `p` are `2 p` and `2 p + 1`.
    pub fn apart(pairs: &[[Sample; 2]]) -> Self {
        Self::of(&by_pair(pairs), false, true)
    }

    /// As [`apart`](Self::apart), of values that come in no order, such as one of each machine. None resembles its neighbour, and one at each
    /// end is always left out: an odd machine says nothing of its type.
    pub fn unordered(pairs: &[[Sample; 2]]) -> Self {
        Self::of(&by_pair(pairs), false, false)
    }

    /// Says of each sample whether it is of multiples of a reference: what is is held against what is not with less confidence.
    #[must_use]
    pub fn referred(mut self, referred: Vec<bool>) -> Self {
        self.referred = referred;
        self
    }

    /// Samples of values, each with the group within which it may change places.
    fn of(samples: &[Vec<(u32, f64)>], alternated: bool, ordered: bool) -> Self {
        let out = usize::from(!ordered);
        let mut family = Self {
            alternated,
            levels: Vec::new(),
            errors: Vec::new(),
            counts: Vec::new(),
            residuals: Vec::new(),
            resemblance: if ordered { resemblance(samples) } else { 0.0 },
            out,
            referred: Vec::new(),
        };
        let mut spreads = Vec::new();
        for (sample, values) in samples.iter().enumerate() {
            let middle = Middle::of(values, out);
            let level = middle.map(|middle| middle.level);
            let spread = middle.filter(|_| values.len() >= FEWEST).map(|middle| middle.spread);
            if let (Some(level), Some(spread)) = (level, spread) {
                family.residuals.extend(values.iter().map(|&(group, value)| Residual {
                    sample,
                    group,
                    value: if spread > 0.0 { (value - level) / spread } else { 0.0 },
                }));
            }
            family.counts.push(values.len());
            family.levels.push(level);
            spreads.push(spread);
        }
        family.errors = errors(&spreads, &family.counts);
        // Groups are shuffled as stretches of neighbours.
        family.residuals.sort_by_key(|residual| residual.group);
        family
    }

    /// The level of a sample, in the unit of its figures; none without figures.
    pub fn level(&self, sample: usize) -> Option<f64> {
        self.levels.get(sample).copied().flatten().map(f64::exp)
    }

    /// For each pair (a, b) how many times as long `b` takes as `a`; none of a pair without [`FEWEST`] blocks each. The intervals hold
    /// together in all but `error` of 100 % of runs, [`ERROR`] or a part of it where there are more families.
    pub fn ratios(&self, pairs: &[(usize, usize)], error: f64) -> Vec<Option<Ratio>> {
        let known: Vec<(usize, usize)> = pairs
            .iter()
            .copied()
            .filter(|&(a, b)| self.errors[a].is_some() && self.errors[b].is_some())
            .collect();
        let reach = if known.is_empty() { 0.0 } else { self.reach(&known, error) };
        let ratio = |&(a, b): &(usize, usize)| {
            let alike = self.referred.get(a) == self.referred.get(b);
            let longer = if alike { 1.0 } else { UNLIKE };
            let own = longer * reach * (self.errors[a]? + self.errors[b]?).sqrt();
            let estimate = self.levels[b]? - self.levels[a]?;
            Some(Ratio {
                estimate: estimate.exp(),
                low: (estimate - own).exp(),
                high: (estimate + own).exp(),
            })
        };
        pairs.iter().map(ratio).collect()
    }

    /// How many standard errors the greatest difference of `pairs` stays below but for the share `error` of runs in which none differ:
    /// by the run's own noise, and never less than of normal noise.
    fn reach(&self, pairs: &[(usize, usize)], error: f64) -> f64 {
        let mut random = fastrand::Rng::with_seed(1);
        let mut values: Vec<f64> = self.residuals.iter().map(|residual| residual.value).collect();
        let mut drawn: Vec<Vec<(u32, f64)>> = vec![Vec::new(); self.counts.len()];
        let mut greatest = |draw: &mut dyn FnMut(&mut [f64]), share: f64| {
            let mut greatest: Vec<f64> = (0..DRAWS)
                .map(|_| {
                    draw(&mut values);
                    drawn.iter_mut().for_each(Vec::clear);
                    for (residual, value) in self.residuals.iter().zip(&values) {
                        drawn[residual.sample].push((residual.group, *value));
                    }
                    self.greatest(&mut drawn, pairs)
                })
                .collect();
            greatest.sort_by(f64::total_cmp);
            // The run itself is one of the draws.
            let place = ((DRAWS + 1) as f64 * (1.0 - share)).ceil() as usize;
            greatest[place.clamp(1, DRAWS) - 1]
        };
        let mut permuted = |values: &mut [f64]| {
            let mut start = 0;
            for group in self.residuals.chunk_by(|a, b| a.group == b.group) {
                random.shuffle(&mut values[start..start + group.len()]);
                start += group.len();
            }
        };
        let own = greatest(&mut permuted, error * SPENT);
        let mut random = fastrand::Rng::with_seed(2);
        let mut before: Vec<Option<f64>> = vec![None; self.counts.len()];
        let news = (1.0 - self.resemblance.powi(2)).sqrt();
        let mut normal = |values: &mut [f64]| {
            before.fill(None);
            for (residual, value) in self.residuals.iter().zip(values) {
                let own = normal(&mut random);
                let next =
                    before[residual.sample].map_or(own, |before| self.resemblance * before + news * own);
                before[residual.sample] = Some(next);
                *value = next;
            }
        };
        let blocks = self.counts.iter().max().copied().unwrap_or(0);
        (own * longer_by(self.resemblance, blocks)).max(greatest(&mut normal, error))
    }

    /// The greatest difference of `pairs` in samples of the shape of these, in standard errors.
    fn greatest(&self, drawn: &mut [Vec<(u32, f64)>], pairs: &[(usize, usize)]) -> f64 {
        if self.alternated {
            take_out_shared(drawn);
        }
        let middles: Vec<Option<Middle>> = drawn.iter().map(|values| Middle::of(values, self.out)).collect();
        let spreads: Vec<Option<f64>> =
            middles.iter().map(|middle| middle.map(|middle| middle.spread)).collect();
        let level = |sample: usize| middles[sample].map_or(0.0, |middle| middle.level);
        let errors = errors(&spreads, &self.counts);
        pairs
            .iter()
            .map(|&(a, b)| {
                let error = errors[a].unwrap_or(0.0) + errors[b].unwrap_or(0.0);
                let apart = (level(a) - level(b)).abs();
                if apart > 0.0 { apart / error.sqrt() } else { 0.0 }
            })
            .fold(0.0, f64::max)
    }
}

/// Takes out what the samples of a block share: the median of what they have above their levels there. The blocks are numbered as by
/// [`number`].
fn take_out_shared(samples: &mut [Vec<(u32, f64)>]) {
    let levels: Vec<Option<f64>> =
        samples.iter().map(|sample| Middle::of(sample, 0).map(|middle| middle.level)).collect();
    let blocks = samples.iter().flatten().map(|(block, _)| *block as usize + 1).max().unwrap_or(0);
    let mut above: Vec<Vec<f64>> = vec![Vec::new(); blocks];
    for (sample, level) in samples.iter().zip(&levels) {
        for (block, value) in sample {
            above[*block as usize].extend(level.map(|level| value - level));
        }
    }
    // What a lone sample has is its own.
    let shared = |above: &mut Vec<f64>| if above.len() > 1 { middle(above).unwrap_or(0.0) } else { 0.0 };
    let shared: Vec<f64> = above.iter_mut().map(shared).collect();
    for (block, value) in samples.iter_mut().flatten() {
        *value -= shared[*block as usize];
    }
}

/// Numbers the blocks that there are from 0 on: a file may call them anything.
fn number(samples: &mut [Vec<(u32, f64)>]) {
    let mut blocks: Vec<u32> = samples.iter().flatten().map(|(block, _)| *block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    for (block, _) in samples.iter_mut().flatten() {
        *block = blocks.partition_point(|known| known < block) as u32;
    }
}

/// A draw of normal noise of spread 1 (G. E. P. Box, M. E. Muller, *A note on the generation of random normal deviates*, 1958).
fn normal(random: &mut fastrand::Rng) -> f64 {
    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
}

/// The one sample against the other, both of the same blocks of one run: how many times as long `b` takes as `a`.
pub fn paired(a: &Sample, b: &Sample) -> Option<Ratio> {
    Family::alternated(&[a.clone(), b.clone()]).ratios(&[(0, 1)], ERROR)[0]
}

/// The logarithms of pairs of samples, which change places within their pair.
fn by_pair(pairs: &[[Sample; 2]]) -> Vec<Vec<(u32, f64)>> {
    let samples =
        (0..).zip(pairs).flat_map(|(pair, samples)| samples.iter().map(move |sample| (pair, sample)));
    samples
        .map(|(pair, sample)| logarithms(sample).into_values().map(|value| (pair, value)).collect())
        .collect()
}

fn logarithms(sample: &Sample) -> BTreeMap<u32, f64> {
    let logarithms = sample.iter().map(|(block, value)| (*block, value.ln()));
    logarithms.filter(|(_, value)| value.is_finite()).collect()
}

/// The squares of the standard errors of the levels of samples with these spreads and counts.
fn errors(spreads: &[Option<f64>], counts: &[usize]) -> Vec<Option<f64>> {
    let mut known: Vec<f64> = spreads.iter().copied().flatten().collect();
    let least = LEAST_SPREAD * middle(&mut known).unwrap_or(0.0);
    spreads
        .iter()
        .zip(counts)
        .map(|(spread, count)| spread.map(|spread| spread.max(least).powi(2) / (*count).max(1) as f64))
        .collect()
}

/// The level of a sample, and what its standard error is made of.
#[derive(Debug, Clone, Copy)]
struct Middle {
    /// The mean of the values without [`TRIMMED`] of them at each end.
    level: f64,
    /// That over the root of the number of values is the standard error of the level: the standard deviation of the values, those that were
    /// left out counting as the nearest that was not, over the share that was not left out.
    spread: f64,
}

impl Middle {
    /// With at least `out` values left out at each end of [`FEWEST`] or more; none of nothing.
    fn of(values: &[(u32, f64)], out: usize) -> Option<Self> {
        let mut values: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len();
        let out = if count < FEWEST { 0 } else { out.max((TRIMMED * count as f64) as usize) };
        let inner = values.get(out..count - out).filter(|inner| !inner.is_empty())?;
        let (least, most, kept) = (inner[0], inner[inner.len() - 1], inner.len());
        let sum: f64 = inner.iter().sum();
        let mean = (sum + out as f64 * (least + most)) / count as f64;
        let square = |value: f64| (value - mean).powi(2);
        let squares: f64 = inner.iter().copied().map(square).sum();
        let squares = squares + out as f64 * (square(least) + square(most));
        let spread = (count as f64 * squares / (kept * (kept - 1).max(1)) as f64).sqrt();
        Some(Self { level: sum / kept as f64, spread })
    }
}

/// How much blocks resemble the one before, not less than none: the mean correlation of neighbours in all samples, what `n` blocks hide of it,
/// (1 + 4 r) / n, and its standard error, what a block's samples share having been one of them.
fn resemblance(samples: &[Vec<(u32, f64)>]) -> f64 {
    let of = |sample: &Vec<(u32, f64)>| {
        let mean = sample.iter().map(|(_, value)| value).sum::<f64>() / sample.len() as f64;
        let all: f64 = sample.iter().map(|(_, value)| (value - mean).powi(2)).sum();
        let next: f64 = sample.windows(2).map(|two| (two[0].1 - mean) * (two[1].1 - mean)).sum();
        (all > 0.0).then(|| (next / all, sample.len() as f64))
    };
    let known: Vec<(f64, f64)> =
        samples.iter().filter(|sample| sample.len() >= FEWEST).filter_map(of).collect();
    if known.is_empty() {
        return 0.0;
    }
    let mean = |value: fn(&(f64, f64)) -> f64| known.iter().map(value).sum::<f64>() / known.len() as f64;
    let (seen, blocks) = (mean(|(correlation, _)| *correlation), mean(|(_, blocks)| *blocks));
    let hidden = (1.0 + 4.0 * seen.max(0.0)) / blocks;
    let error = 1.0 / (blocks * known.len().saturating_sub(1).max(1) as f64).sqrt();
    (seen + hidden + error).clamp(0.0, MOST_RESEMBLANCE)
}

/// How many times as large a mean of so many blocks is in its standard errors where each resembles the one before by so much.
fn longer_by(resemblance: f64, blocks: usize) -> f64 {
    let count = blocks as f64;
    let share = |apart: usize| (1.0 - apart as f64 / count) * resemblance.powi(apart as i32);
    let variance = 1.0 + 2.0 * (1..blocks).map(share).sum::<f64>();
    // Of blocks that resemble each other the standard deviation comes out too small as well.
    let seen = (count - variance) / (count - 1.0);
    if seen > 0.0 { (variance / seen).sqrt() } else { 1.0 }
}

/// The middle value, or the mean of the two middle ones; none of nothing.
fn middle(values: &mut [f64]) -> Option<f64> {
    let half = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(if even { f64::midpoint(lower, *upper) } else { *upper })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::Standing;

    /// Noise of so many percent, with a second speed now and then, as virtual machines have it.
    #[derive(Clone, Copy)]
    struct Noise {
        own: f64,
        shared: f64,
        slow: f64,
    }

    const QUIET: Noise = Noise { own: 0.01, shared: 0.0, slow: 0.0 };
    const DRIFTING: Noise = Noise { own: 0.01, shared: 0.2, slow: 0.0 };
    const TWO_SPEEDS: Noise = Noise { own: 0.01, shared: 0.0, slow: 0.22 };

    fn run(levels: &[f64], blocks: u32, noise: Noise, seed: u64) -> Vec<Sample> {
        let mut random = fastrand::Rng::with_seed(seed);
        let drift: Vec<f64> = (0..blocks).map(|_| noise.shared * normal(&mut random)).collect();
        let mut sample = |level: &f64| {
            let value = |(block, drift): (u32, &f64)| {
                let slow = if random.f64() < noise.slow { 1.35 } else { 1.0 };
                (block, level * slow * (drift + noise.own * normal(&mut random)).exp())
            };
            (0..).zip(&drift).map(value).collect()
        };
        levels.iter().map(&mut sample).collect()
    }

    /// Between a multiple of the reference and what was taken as measured 141 of 3,000 surveys of equal things had said that one is slower.
    #[test]
    fn between_what_had_a_reference_and_what_had_none_the_interval_is_longer() {
        let family = || Family::alternated(&run(&[1.0; 4], 9, QUIET, 1));
        let pairs = all_pairs(4);
        let alike = family().ratios(&pairs, ERROR);
        let mixed = family().referred(vec![true, true, false, false]).ratios(&pairs, ERROR);
        for ((a, b), (alike, mixed)) in pairs.iter().zip(alike.iter().zip(&mixed)) {
            let reach =
                |ratio: &Option<Ratio>| ratio.map(|ratio| (ratio.high / ratio.estimate).ln()).unwrap();
            let longer = if (*a < 2) == (*b < 2) { 1.0 } else { UNLIKE };
            assert!((reach(mixed) - longer * reach(alike)).abs() < 1e-9, "{a} and {b}");
        }
    }

    fn all_pairs(count: usize) -> Vec<(usize, usize)> {
        (0..count).flat_map(|b| (0..b).map(move |a| (a, b))).collect()
    }

    #[test]
    fn of_equal_things_none_is_called_different_in_nineteen_of_twenty_runs_however_many_they_are() {
        for noise in [QUIET, DRIFTING, TWO_SPEEDS] {
            for (count, blocks) in [(2, 8), (12, 6), (12, 9)] {
                let wrong = (0..60).filter(|seed| {
                    let family = Family::alternated(&run(&vec![10.0; count], blocks, noise, *seed));
                    let ratios = family.ratios(&all_pairs(count), ERROR);
                    ratios.iter().flatten().any(|ratio| ratio.low > 1.0 || ratio.high < 1.0)
                });
                let wrong = wrong.count();
                assert!(wrong <= 6, "{wrong} of 60 with {count} things and {blocks} blocks");
            }
        }
    }

    /// With six blocks, and thirty rivals, complete separation was no verdict.
    #[test]
    fn six_blocks_of_thirty_things_tell_what_differs_widely() {
        let mut levels = vec![30_000.0; 30];
        levels[3] = 80.0;
        let family = Family::alternated(&run(&levels, 6, QUIET, 1));
        let ratios = family.ratios(&all_pairs(30), ERROR);
        let others = all_pairs(30).into_iter().zip(ratios).filter(|((a, b), _)| *a == 3 || *b == 3);
        for ((a, _), ratio) in others {
            let verdict = ratio.unwrap().standing(0.025);
            assert_eq!(verdict, if a == 3 { Standing::Slower } else { Standing::Faster });
        }
    }

    #[test]
    fn a_tenth_is_told_through_a_drift_of_twenty_percent() {
        let told = (0..40).filter(|seed| {
            let family = Family::alternated(&run(&[10.0, 11.0, 15.0], 10, DRIFTING, *seed));
            family.ratios(&[(0, 1)], ERROR)[0].unwrap().standing(0.025) == Standing::Slower
        });
        assert!(told.count() >= 38);
    }

    #[test]
    fn the_ratio_is_that_of_the_levels_and_the_interval_holds_it() {
        let samples = run(&[10.0, 12.0], 8, QUIET, 3);
        let family = Family::alternated(&samples);
        let ratio = family.ratios(&[(0, 1)], ERROR)[0].unwrap();
        assert!((ratio.estimate - family.level(1).unwrap() / family.level(0).unwrap()).abs() < 1e-12);
        assert!(ratio.low < 1.2 && 1.2 < ratio.high && ratio.high / ratio.low < 1.06, "{ratio:?}");
        let [first, second] = [&samples[0], &samples[1]].map(Clone::clone);
        let apart = Family::apart(&[[first, second]]).ratios(&[(0, 1)], ERROR)[0].unwrap();
        assert!(apart.low < 1.2 && 1.2 < apart.high, "{apart:?}");
    }

    /// Sorted, machines looked like blocks that resemble each other by nine tenths.
    #[test]
    fn of_machines_neither_their_order_nor_an_odd_one_says_anything() {
        let types = |seed, slower: f64| {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut one = |level: f64| {
                let mut machines: Vec<f64> =
                    (0..7).map(|_| level * (0.01 * normal(&mut random)).exp()).collect();
                machines[0] *= 1.12;
                machines.sort_by(f64::total_cmp);
                (0..).zip(machines).collect::<Sample>()
            };
            Family::unordered(&[[one(10.0), one(10.0 * slower)]]).ratios(&[(0, 1)], ERROR)[0].unwrap()
        };
        let wrong = (0..100).filter(|seed| types(*seed, 1.0).behind(0.0) != Standing::Inconclusive).count();
        assert!(wrong <= 9, "{wrong} of 100 pairs of equal types");
        let told = (0..100).filter(|seed| types(*seed, 1.2).behind(0.025) == Standing::Slower).count();
        assert!(told >= 95, "{told} of 100 types slower by a fifth");
    }

    #[test]
    fn five_blocks_tell_nothing_apart_and_still_have_a_level() {
        let family = Family::alternated(&run(&[10.0, 100.0], 5, QUIET, 1));
        assert_eq!(family.ratios(&[(0, 1)], ERROR), [None]);
        assert!((family.level(1).unwrap() / 100.0 - 1.0).abs() < 0.05);
        assert_eq!(Family::alternated(&[]).ratios(&[], ERROR), []);
    }
}
