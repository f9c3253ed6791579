// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether one thing takes longer than another, by how much, and how sure that is: every verdict of this project that compares
//! times is made here.
//!
//! SUMMARY: given are figures by block, of things measured beside each other in one run ([`Family::alternated`]) or of pairs of
//! runs ([`Family::apart`]). What comes out is the ratio of any two with an interval, such that **all intervals asked for hold
//! together** in 95 of 100 runs, and one of four verdicts ([`Verdict`]). The ratio is that of the two [levels](Family::level), so that
//! the figure in a sentence is the figure in the table.
//!
//! DETAILS: everything is done in logarithms.
//! - The level of a sample is the Hodges–Lehmann estimate, the median of the means of all pairs of its values (J. L. Hodges,
//!   E. L. Lehmann, *Estimates of location based on rank tests*, Annals of Mathematical Statistics 34, 1963): 95 % as exact as the mean of normal
//!   samples, and up to 29 % of the blocks may have met something else.
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
//!
//! `doorbell study --noise` says what this gives on the noise of stored runs.

use std::collections::BTreeMap;

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
const DRAWS: std::ops::RangeInclusive<usize> = 399..=999;

/// Means of pairs that all draws may take together: some tenths of a second.
const WORK: usize = 20_000_000;

/// No sample's spread counts as less than this share of the median one.
const LEAST_SPREAD: f64 = 0.5;

/// How many times as long the interval is between a multiple of the reference and what was taken as measured. The one follows the machine's
/// speed through the middle of the run alone, the other in every block; and nine blocks may all have met one of two speeds. Of 3,000 surveys
/// of equal things, made of recorded noise, 141 called something different, 6 of them things that are alike in this; with it 15 do.
const UNLIKE: f64 = 1.5;

/// A figure above 0 for each block that has one.
pub type Sample = BTreeMap<u32, f64>;

/// How many times as long one thing takes as another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Above 1: it takes longer.
    pub estimate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// What a ratio says of the first thing against the second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    Slower,
    Faster,
    /// Whatever the difference is, it is less than this share.
    Same {
        within: f64,
    },
    /// It could be no difference, or one that matters.
    Inconclusive,
}

impl Ratio {
    /// The verdict, if differences of less than `relevant`, a share, do not matter: the whole interval beyond 1 and the estimate
    /// beyond what matters, or the whole interval within it, or neither.
    pub fn verdict(self, relevant: f64) -> Verdict {
        let most = 1.0 + relevant;
        let within = self.high.max(1.0 / self.low) - 1.0;
        if within <= relevant {
            Verdict::Same { within }
        } else if self.low > 1.0 && self.estimate >= most {
            Verdict::Slower
        } else if self.high < 1.0 && self.estimate <= 1.0 / most {
            Verdict::Faster
        } else {
            Verdict::Inconclusive
        }
    }

    /// The verdict on what is held against the best of several: of what surely takes longer it is no question whether it is the best, however
    /// little longer it takes.
    pub fn behind(self, relevant: f64) -> Verdict {
        match self.verdict(relevant) {
            Verdict::Inconclusive if self.low > 1.0 => Verdict::Slower,
            verdict => verdict,
        }
    }

    /// With an interval that is longer at both ends: by what `doubt`, a standard deviation of the logarithm, adds to a reach of two.
    #[must_use]
    pub fn doubted(self, doubt: f64) -> Self {
        let longer = |end: f64| (end / self.estimate).ln().abs().hypot(2.0 * doubt).exp();
        Self { low: self.estimate / longer(self.low), high: self.estimate * longer(self.high), ..self }
    }

    /// With an interval that reaches to what the ratio is if something else took `factor` times as long for all of it.
    #[must_use]
    pub fn explained_by(self, factor: f64) -> Self {
        Self { low: self.low.min(self.low / factor), high: self.high.max(self.high / factor), ..self }
    }

    /// With an interval that holds 1: something else explains all of the difference.
    #[must_use]
    pub fn explained(self) -> Self {
        Self { low: self.low.min(1.0), high: self.high.max(1.0), ..self }
    }

    /// The other way round.
    #[must_use]
    pub fn inverse(self) -> Self {
        Self { estimate: 1.0 / self.estimate, low: 1.0 / self.high, high: 1.0 / self.low }
    }
}

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
        Self::of(&samples, true)
    }

    /// Pairs of runs; the samples of pair `p` are `2 p` and `2 p + 1`.
    pub fn apart(pairs: &[[Sample; 2]]) -> Self {
        let samples =
            (0..).zip(pairs).flat_map(|(pair, samples)| samples.iter().map(move |sample| (pair, sample)));
        let groups: Vec<Vec<(u32, f64)>> = samples
            .map(|(pair, sample)| logarithms(sample).into_values().map(|value| (pair, value)).collect())
            .collect();
        Self::of(&groups, false)
    }

    /// Says of each sample whether it is of multiples of a reference: what is is held against what is not with less confidence.
    #[must_use]
    pub fn referred(mut self, referred: Vec<bool>) -> Self {
        self.referred = referred;
        self
    }

    /// Samples of values, each with the group within which it may change places.
    fn of(samples: &[Vec<(u32, f64)>], alternated: bool) -> Self {
        let mut family = Self {
            alternated,
            levels: Vec::new(),
            errors: Vec::new(),
            counts: Vec::new(),
            residuals: Vec::new(),
            referred: Vec::new(),
        };
        let mut spreads = Vec::new();
        for (sample, values) in samples.iter().enumerate() {
            let level = level(values.iter().map(|(_, value)| value));
            let spread = level.filter(|_| values.len() >= FEWEST).map(|level| spread(values, level));
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
        let means: usize = self.counts.iter().map(|count| count * (count + 1) / 2).sum();
        let draws = (WORK / means.max(1)).clamp(*DRAWS.start(), *DRAWS.end());
        let mut random = fastrand::Rng::with_seed(1);
        let mut values: Vec<f64> = self.residuals.iter().map(|residual| residual.value).collect();
        let mut drawn: Vec<Vec<(u32, f64)>> = vec![Vec::new(); self.counts.len()];
        let mut greatest = |draw: &mut dyn FnMut(&mut [f64]), share: f64| {
            let mut greatest: Vec<f64> = (0..draws)
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
            let place = ((draws + 1) as f64 * (1.0 - share)).ceil() as usize;
            greatest[place.clamp(1, draws) - 1]
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
        let mut normal =
            |values: &mut [f64]| values.iter_mut().for_each(|value| *value = normal(&mut random));
        own.max(greatest(&mut normal, error))
    }

    /// The greatest difference of `pairs` in samples of the shape of these, in standard errors.
    fn greatest(&self, drawn: &mut [Vec<(u32, f64)>], pairs: &[(usize, usize)]) -> f64 {
        if self.alternated {
            take_out_shared(drawn);
        }
        let levels: Vec<f64> =
            drawn.iter().map(|values| level(values.iter().map(|(_, value)| value)).unwrap_or(0.0)).collect();
        let spreads: Vec<Option<f64>> = drawn
            .iter()
            .zip(&levels)
            .map(|(values, level)| (!values.is_empty()).then(|| spread(values, *level)))
            .collect();
        let errors = errors(&spreads, &self.counts);
        pairs
            .iter()
            .map(|&(a, b)| {
                let error = errors[a].unwrap_or(0.0) + errors[b].unwrap_or(0.0);
                let apart = (levels[a] - levels[b]).abs();
                if apart > 0.0 { apart / error.sqrt() } else { 0.0 }
            })
            .fold(0.0, f64::max)
    }
}

/// Takes out what the samples of a block share: the median of what they have above their levels there. The blocks are numbered as by
/// [`number`].
fn take_out_shared(samples: &mut [Vec<(u32, f64)>]) {
    let levels: Vec<Option<f64>> =
        samples.iter().map(|sample| level(sample.iter().map(|(_, value)| value))).collect();
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

/// The standard deviation of a sample around its level.
fn spread(values: &[(u32, f64)], level: f64) -> f64 {
    let squares: f64 = values.iter().map(|(_, value)| (value - level).powi(2)).sum();
    (squares / (values.len().saturating_sub(1)).max(1) as f64).sqrt()
}

/// The Hodges–Lehmann estimate; none of nothing.
fn level<'values>(values: impl Iterator<Item = &'values f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.copied().collect();
    if values.len() > MANY {
        values.sort_by(f64::total_cmp);
        return Some(middle_of_means(&values));
    }
    let mut means = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (place, one) in values.iter().enumerate() {
        means.extend(values[..=place].iter().map(|other| f64::midpoint(*one, *other)));
    }
    middle(&mut means)
}

/// From so many values on the means of their pairs are counted, not made.
const MANY: usize = 24;

/// When so many means a value are left, they are made, and the middle one is taken.
const FEW: usize = 1;

/// The middle of the means of all pairs of `sorted`, a value with itself included. How many lie below something takes one walk, so that the
/// stretch that holds the middle is halved until few means are left in it, and those are made: some ten walks along n values for
/// n²/2 means (D. B. Johnson, T. Mizoguchi, *Selecting the Kth element in X + Y and X₁ + … + Xₘ*, SIAM Journal on Computing 7, 1978).
fn middle_of_means(sorted: &[f64]) -> f64 {
    let all = sorted.len() * (sorted.len() + 1) / 2;
    let ranks = [all.div_ceil(2), all / 2 + 1];
    // Sums, of which none lies at or below `low` and all at or below `high`; how many are at or below each.
    let (mut low, mut high) = ((2.0 * sorted[0]).next_down(), 2.0 * sorted[sorted.len() - 1]);
    let (mut under, mut upto) = (0, all);
    while upto - under > FEW * sorted.len() {
        let half = f64::midpoint(low, high);
        if half <= low || half >= high {
            // All that are left are one number.
            return high / 2.0;
        }
        let count = ends(sorted, half).map(|(place, end)| end - place).sum();
        if count < ranks[0] {
            (low, under) = (half, count);
        } else if count >= ranks[1] {
            (high, upto) = (half, count);
        } else {
            // The two middle ones lie on both sides of it.
            let sum = |place: usize, other: usize| sorted.get(other).map(|other| sorted[place] + other);
            let last = ends(sorted, half).filter(|(place, end)| end > place);
            let last = last.filter_map(|(place, end)| sum(place, end - 1)).fold(f64::NEG_INFINITY, f64::max);
            let next = ends(sorted, half).filter_map(|(place, end)| sum(place, end));
            return f64::midpoint(last, next.fold(f64::INFINITY, f64::min)) / 2.0;
        }
    }
    let stretches = ends(sorted, low).zip(ends(sorted, high));
    let mut left: Vec<f64> = stretches
        .flat_map(|((place, from), (_, to))| sorted[from..to].iter().map(move |other| sorted[place] + other))
        .collect();
    let (below, upper, _) = left.select_nth_unstable_by(ranks[1] - under - 1, f64::total_cmp);
    let lower =
        if ranks[0] == ranks[1] { *upper } else { below.iter().copied().fold(f64::NEG_INFINITY, f64::max) };
    f64::midpoint(lower, *upper) / 2.0
}

/// Each place of `sorted` with the end of those from it on whose sum with it is at most `sum`: that end goes down as the place goes up.
fn ends(sorted: &[f64], sum: f64) -> impl Iterator<Item = (usize, usize)> {
    let mut end = sorted.len();
    sorted.iter().enumerate().map(move |(place, one)| {
        while end > place && one + sorted[end - 1] > sum {
            end -= 1;
        }
        end = end.max(place);
        (place, end)
    })
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
    fn the_middle_of_the_means_is_the_same_however_it_is_found() {
        let mut random = fastrand::Rng::with_seed(1);
        // Exact figures, and steps of a clock, of which many are one.
        for (count, step) in
            [1, 2, 3, 10, 24, 25, 48, 99, 250].into_iter().flat_map(|count| [(count, 0.0), (count, 0.5)])
        {
            let mut values: Vec<f64> = (0..count).map(|_| normal(&mut random)).collect();
            if step > 0.0 {
                values.iter_mut().for_each(|value| *value = (*value / step).round() * step);
            }
            values.sort_by(f64::total_cmp);
            let mut means: Vec<f64> = (0..count)
                .flat_map(|a| (a..count).map(move |b| (a, b)))
                .map(|(a, b)| f64::midpoint(values[a], values[b]))
                .collect();
            let [found, wanted] = [middle_of_means(&values), middle(&mut means).unwrap()];
            assert_eq!(found, wanted, "{count}");
        }
        assert_eq!(middle_of_means(&[2.0; 60]), 2.0, "all alike");
        // Two heaps, and as many means above a gap as below it.
        let heaps: Vec<f64> = (0..60).map(|place| if place < 30 { 1.0 } else { 3.0 }).collect();
        assert_eq!(middle_of_means(&heaps), 2.0);
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
            let verdict = ratio.unwrap().verdict(0.025);
            assert_eq!(verdict, if a == 3 { Verdict::Slower } else { Verdict::Faster });
        }
    }

    #[test]
    fn a_tenth_is_told_through_a_drift_of_twenty_percent() {
        let told = (0..40).filter(|seed| {
            let family = Family::alternated(&run(&[10.0, 11.0, 15.0], 10, DRIFTING, *seed));
            family.ratios(&[(0, 1)], ERROR)[0].unwrap().verdict(0.025) == Verdict::Slower
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

    #[test]
    fn five_blocks_tell_nothing_apart_and_still_have_a_level() {
        let family = Family::alternated(&run(&[10.0, 100.0], 5, QUIET, 1));
        assert_eq!(family.ratios(&[(0, 1)], ERROR), [None]);
        assert!((family.level(1).unwrap() / 100.0 - 1.0).abs() < 0.05);
        assert_eq!(Family::alternated(&[]).ratios(&[], ERROR), []);
    }

    #[test]
    fn there_are_four_verdicts() {
        let verdict = |low, estimate, high| Ratio { estimate, low, high }.verdict(0.025);
        assert_eq!(verdict(1.01, 1.05, 1.09), Verdict::Slower);
        assert_eq!(verdict(0.91, 0.95, 0.99), Verdict::Faster);
        assert!(matches!(verdict(0.99, 1.0, 1.02), Verdict::Same { within } if (within - 0.02).abs() < 1e-9));
        assert_eq!(verdict(0.97, 1.0, 1.01), Verdict::Inconclusive);
        assert_eq!(
            verdict(1.001, 1.02, 1.04),
            Verdict::Inconclusive,
            "shown, and perhaps too small to matter"
        );
    }

    #[test]
    fn what_else_explains_a_difference_widens_the_interval() {
        let ratio = Ratio { estimate: 1.3, low: 1.2, high: 1.4 };
        assert_eq!(ratio.explained().verdict(0.025), Verdict::Inconclusive);
        let primitive = ratio.explained_by(1.1);
        assert!((primitive.low - 1.2 / 1.1).abs() < 1e-9 && (primitive.high - 1.4).abs() < 1e-9);
        assert_eq!(
            primitive.verdict(0.025),
            Verdict::Slower,
            "a machine slower by a tenth does not make it slower by three"
        );
        let doubted = ratio.doubted(0.0);
        assert!((doubted.low - 1.2).abs() < 1e-9 && (doubted.high - 1.4).abs() < 1e-9);
        assert!(ratio.doubted(0.05).low < 1.17);
        assert!((ratio.inverse().high - 1.0 / 1.2).abs() < 1e-12);
    }
}
