// SPDX-License-Identifier: MIT OR Apache-2.0
//! Populations: times that fall into groups, such as wakes on the same core and wakes across cores.
//!
//! SUMMARY: two groups are told apart when they lie at least a fifth apart, the
//! smaller holds at least a twentieth of the samples, and the density between them
//! is less than half of the lower peak by more than chance allows. Of unimodal
//! log-normal samples of any width fewer than 1 % are split (tested below).
//!
//! DETAILS: times are taken as logarithms, because a group's spread is proportional to its
//! level. The density is estimated with a Gaussian kernel whose width follows Silverman's
//! rule of thumb, 0.9 min(s, IQR/1.34) n^(-1/5) (B. W. Silverman, *Density Estimation for
//! Statistics and Data Analysis*, 1986, §3.4.2), with s taken from the central samples,
//! since tails are long; never narrower than 2 %, nor than the clock's grid, of which each
//! step would look like a group. Peaks are then merged across the shallowest valley, over
//! and over, until every valley that is left satisfies the rule. A valley is more than
//! chance if the samples within one kernel width of it are fewer than those around the
//! lower peak by four standard deviations of their difference (counts are Poisson); four,
//! because a density has some fifty places where a valley could appear by chance.

use serde::{Deserialize, Serialize};

use super::Histogram;

/// A group of samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Population {
    /// What the counters of the trial prove it to be: `same core` or `other core`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its share of all samples, 0 to 1.
    pub share: f64,
    /// Its median, nanoseconds.
    pub p50_ns: f64,
    /// Its 99th percentile, nanoseconds.
    pub p99_ns: f64,
}

/// Least share of a group.
const LEAST_SHARE: f64 = 0.05;
/// Least ratio of the levels of two groups.
const LEAST_RATIO: f64 = 1.2;
/// Greatest density between two groups, as a share of the lower peak.
const GREATEST_VALLEY: f64 = 0.5;
/// Standard deviations by which a valley must differ from its lower peak.
const LEAST_DEVIATIONS: f64 = 4.0;
/// Fewest samples in which groups are looked for: the smallest group then has ten.
const FEWEST: u64 = 200;
/// Narrowest kernel, in natural logarithm.
const NARROWEST: f64 = 0.02;
/// Bins per kernel width; the density is smooth at this scale.
const BINS_PER_WIDTH: usize = 4;

/// The groups in `histogram` from short to long; empty unless there are at least two.
pub fn populations(histogram: &Histogram) -> Vec<Population> {
    if histogram.count() < FEWEST {
        return Vec::new();
    }
    let density = Density::of(histogram);
    let mut peaks = density.peaks();
    // The worst border goes first, with the lower of its two peaks,
    // until all that are left part two groups.
    while let Some(worst) = (0..peaks.len().saturating_sub(1))
        .filter(|&index| !density.parts(&peaks, index))
        .max_by(|&a, &b| density.depth(&peaks, a).total_cmp(&density.depth(&peaks, b)))
    {
        peaks.remove(worst + usize::from(density.at[peaks[worst]] >= density.at[peaks[worst + 1]]));
    }
    let borders: Vec<u64> =
        (1..peaks.len()).map(|index| density.ps(density.valley(&peaks, index - 1) + 1)).collect();
    if borders.is_empty() { Vec::new() } else { describe(histogram, &borders) }
}

/// Cuts the samples at the borders, picoseconds.
fn describe(histogram: &Histogram, borders: &[u64]) -> Vec<Population> {
    let mut groups = vec![Histogram::new(); borders.len() + 1];
    for (ps, samples) in histogram.buckets() {
        groups[borders.partition_point(|border| *border <= ps)].record_many(ps, samples);
    }
    let ns = |ps: u64| ps as f64 / 1000.0;
    groups
        .iter()
        .map(|group| Population {
            label: None,
            share: group.count() as f64 / histogram.count() as f64,
            p50_ns: ns(group.quantile(0.5)),
            p99_ns: ns(group.quantile(0.99)),
        })
        .collect()
}

/// The density of the logarithms, in bins of a quarter of the kernel's width.
struct Density {
    /// The logarithm at which bin 0 begins, and the width of a bin.
    low: f64,
    bin_width: f64,
    /// The smoothed density.
    at: Vec<f64>,
    /// Samples in all bins before each.
    sums: Vec<f64>,
}

impl Density {
    fn of(histogram: &Histogram) -> Self {
        let width = kernel_width(histogram);
        // Outside of these lies less than the smallest group, so that no peak is missed.
        let low = ln(histogram.quantile(0.001)) - 2.0 * width;
        let high = ln(histogram.quantile(0.999)) + 2.0 * width;
        let bin_width = width / BINS_PER_WIDTH as f64;
        // At most ln(one hour / 1 ps) / (2 % / 4), some 7000.
        let mut bins = vec![0.0; ((high - low) / bin_width) as usize + 1];
        for (ps, samples) in histogram.buckets() {
            let place = (ln(ps) - low) / bin_width;
            if place >= 0.0 && (place as usize) < bins.len() {
                bins[place as usize] += samples as f64;
            }
        }
        let mut sums = vec![0.0];
        for samples in &bins {
            sums.push(sums[sums.len() - 1] + samples);
        }
        Self { low, bin_width, at: smooth(&bins), sums }
    }

    /// Where a bin begins, picoseconds.
    fn ps(&self, bin: usize) -> u64 {
        (self.low + bin as f64 * self.bin_width).exp() as u64
    }

    fn samples(&self, bins: std::ops::Range<usize>) -> f64 {
        let last = self.sums.len() - 1;
        self.sums[bins.end.min(last)] - self.sums[bins.start.min(last)]
    }

    /// Every local maximum.
    fn peaks(&self) -> Vec<usize> {
        let at = |index: usize| self.at.get(index).copied().unwrap_or(0.0);
        (0..self.at.len())
            .filter(|&index| at(index) > at(index.wrapping_sub(1)) && at(index) >= at(index + 1))
            .collect()
    }

    /// The lowest bin between a peak and the next.
    fn valley(&self, peaks: &[usize], index: usize) -> usize {
        let between = peaks[index]..=peaks[index + 1];
        between.min_by(|&a, &b| self.at[a].total_cmp(&self.at[b])).unwrap_or(peaks[index])
    }

    /// The density in the valley after peak `index`, as a share of the lower of its two peaks.
    fn depth(&self, peaks: &[usize], index: usize) -> f64 {
        self.at[self.valley(peaks, index)] / self.at[peaks[index]].min(self.at[peaks[index + 1]])
    }

    /// Whether the valley after peak `index` parts two groups.
    fn parts(&self, peaks: &[usize], index: usize) -> bool {
        let (peak, next, valley) = (peaks[index], peaks[index + 1], self.valley(peaks, index));
        let first = if index == 0 { 0 } else { self.valley(peaks, index - 1) + 1 };
        let last = if index + 2 == peaks.len() { self.at.len() } else { self.valley(peaks, index + 1) + 1 };
        let smaller = self.samples(first..valley + 1).min(self.samples(valley + 1..last));
        let lower = if self.at[peak] < self.at[next] { peak } else { next };
        let around = |bin: usize| self.samples(bin.saturating_sub(BINS_PER_WIDTH)..bin + BINS_PER_WIDTH + 1);
        let (high, low) = (around(lower), around(valley));
        smaller >= LEAST_SHARE * self.sums[self.sums.len() - 1]
            && (next - peak) as f64 * self.bin_width >= LEAST_RATIO.ln()
            && self.depth(peaks, index) <= GREATEST_VALLEY
            && high - low >= LEAST_DEVIATIONS * (high + low).sqrt()
    }
}

fn ln(ps: u64) -> f64 {
    (ps.max(1) as f64).ln()
}

/// The kernel's standard deviation in natural logarithm.
fn kernel_width(histogram: &Histogram) -> f64 {
    let at = |q: f64| ln(histogram.quantile(q));
    // A normal distribution's quartiles are 1.34 standard deviations
    // apart, its 5th and 95th percentile 3.29.
    let spread = ((at(0.75) - at(0.25)) / 1.34).min((at(0.95) - at(0.05)) / 3.29);
    let rule = 0.9 * spread * (histogram.count() as f64).powf(-0.2);
    let grid = histogram.grid_ps() / histogram.quantile(0.5).max(1) as f64;
    rule.max(grid).max(NARROWEST)
}

/// The bins under a Gaussian kernel of [`BINS_PER_WIDTH`] bins, cut at four standard deviations.
fn smooth(bins: &[f64]) -> Vec<f64> {
    const REACH: usize = 4 * BINS_PER_WIDTH;
    let weight = |distance: usize| (-0.5 * (distance as f64 / BINS_PER_WIDTH as f64).powi(2)).exp();
    let weights: Vec<f64> = (0..=REACH).map(weight).collect();
    (0..bins.len())
        .map(|center| {
            let near = center.saturating_sub(REACH)..(center + REACH + 1).min(bins.len());
            near.map(|bin| bins[bin] * weights[bin.abs_diff(center)]).sum()
        })
        .collect()
}
#[cfg(test)]
mod tests {
    use super::*;

    /// Log-normal samples around `median_ns` with a standard deviation of `sigma` in the logarithm.
    fn log_normal(
        histogram: &mut Histogram,
        random: &mut fastrand::Rng,
        median_ns: f64,
        sigma: f64,
        count: u64,
    ) {
        for _ in 0..count {
            // Box and Muller's transform of two uniform numbers.
            let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
            let normal = radius * (std::f64::consts::TAU * random.f64()).cos();
            histogram.record((median_ns * 1000.0 * (normal * sigma).exp()) as u64);
        }
    }

    fn mixture(parts: &[(f64, f64, u64)], seed: u64) -> Histogram {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut histogram = Histogram::new();
        for &(median, sigma, count) in parts {
            log_normal(&mut histogram, &mut random, median, sigma, count);
        }
        histogram
    }

    #[test]
    fn unimodal_log_normal_samples_are_split_in_fewer_than_one_case_in_a_hundred() {
        let mut split = 0;
        let mut cases = 0;
        for sigma in [0.01, 0.05, 0.2, 0.5, 1.0] {
            for (count, times) in [(200, 60), (1000, 60), (10_000, 20)] {
                for seed in 0..times {
                    cases += 1;
                    split += u32::from(!populations(&mixture(&[(8000.0, sigma, count)], seed)).is_empty());
                }
            }
        }
        assert!(split * 100 < cases, "{split} of {cases} split");
    }

    #[test]
    fn a_long_tail_is_no_population() {
        // One in a hundred takes ten times as long: a tick of the scheduler, not a way of waking.
        for seed in 0..10 {
            assert_eq!(populations(&mixture(&[(8000.0, 0.1, 9900), (80_000.0, 0.3, 100)], seed)), []);
        }
    }

    #[test]
    fn the_two_populations_of_an_unpinned_pipe_are_found_with_their_shares_and_medians() {
        // The levels that `perf bench sched pipe` showed on one machine: 8.7 and 16.4 us.
        for share in [0.1, 0.5, 0.9] {
            let (fast, slow) = ((10_000.0 * share) as u64, (10_000.0 * (1.0 - share)) as u64);
            let groups = populations(&mixture(&[(8700.0, 0.1, fast), (16_400.0, 0.1, slow)], 7));
            assert_eq!(groups.len(), 2, "{groups:?}");
            assert!((groups[0].share - share).abs() < 0.01, "{groups:?}");
            assert!((groups[0].p50_ns / 8700.0 - 1.0).abs() < 0.02, "{groups:?}");
            assert!((groups[1].p50_ns / 16_400.0 - 1.0).abs() < 0.02, "{groups:?}");
        }
    }

    #[test]
    fn populations_are_found_from_a_few_hundred_samples_on() {
        let found = (0..100)
            .filter(|seed| {
                populations(&mixture(&[(8000.0, 0.1, 200), (16_000.0, 0.1, 200)], *seed)).len() == 2
            })
            .count();
        assert!(found >= 99, "{found} of 100");
    }

    #[test]
    fn three_populations_are_three() {
        let groups = populations(&mixture(&[(1e3, 0.1, 3000), (8e3, 0.1, 3000), (35e3, 0.2, 3000)], 3));
        assert_eq!(groups.len(), 3, "{groups:?}");
        let whole: f64 = groups.iter().map(|group| group.share).sum();
        assert!((whole - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_steps_of_a_coarse_clock_are_no_populations() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut histogram = Histogram::new();
        for _ in 0..10_000 {
            // 45 ns with a spread of a quarter, read from a clock that steps by 10 ns.
            let ns = 45.0 * (1.0 + 0.25 * (random.f64() + random.f64() - 1.0));
            histogram.record((ns / 10.0).round() as u64 * 10_000);
        }
        assert_eq!(populations(&histogram), []);
    }

    #[test]
    fn no_samples_and_equal_samples_have_no_populations() {
        assert_eq!(populations(&Histogram::new()), []);
        let mut same = Histogram::new();
        same.record_many(5_000_000, 100_000);
        assert_eq!(populations(&same), []);
    }
}
