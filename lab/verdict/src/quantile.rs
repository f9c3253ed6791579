// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds of a quantile, and of the share of wakes above a limit,
//! that hold whatever the distribution of times.
//!
//! SUMMARY: of `n` wakes `k` took longer than a limit. With the asked-for
//! confidence the share of all wakes that do lies below [`Above::upper`] and above
//! [`Above::lower`]. A quantile is below the limit with that confidence if the
//! upper bound of the share is no more than what the quantile leaves above it.
//!
//! DETAILS: the bounds are those of C. J. Clopper and E. S. Pearson, *The use of confidence or
//! fiducial limits illustrated in the case of the binomial* (Biometrika 26, 1934): the upper one is
//! the share `p` at which `I(p; k + 1, n - k)`, the regularised incomplete beta function, equals
//! the confidence. With `k = 0` that is `1 - (1 - confidence)^(1/n)`, about `3 / n` at 95 %
//! (J. A. Hanley, A. Lippman-Hand, *If nothing goes wrong, is everything all right?*, JAMA 249,
//! 1983). Turned round, it is the bound of a quantile by an order statistic (H. A. David, H. N.
//! Nagaraja, *Order Statistics*, 2003, §7.1).
//!
//! Wakes near each other in time are alike, so `n` of them tell less than `n` independent ones. How
//! much less is seen in how the count above the limit differs from block to block: the ratio of
//! that variance to the binomial one is L. Kish's design effect. That variance is itself known from
//! no more than the blocks, of which few may look alike by chance: with `B` of them it has `B - 1`
//! degrees of freedom, and the squared ratio of Student's quantiles at `n - 1` and at `B - 1` makes
//! up for it. Both together divide `n` and `k` (E. L. Korn, B. I. Graubard, *Confidence intervals
//! for proportions with small expected number of positive counts estimated from survey data*,
//! Survey Methodology 24, 1998).
//!
//! Few wakes above the limit do not show how they heap: one alone always looks independent, and
//! none show nothing. Then the effect is also taken at the highest time that has [`ENOUGH`] above
//! it, and the greater of the two counts. Where that cannot be seen either, or there is only one
//! block, every block tells as much as one wake: whatever is alike in a block, blocks are not.
//!
//! What is promised: the confidence is kept for independent wakes, and nearly where what makes a
//! block differ is in every block, more or less. In simulated runs of 2, 3, 5 and 20 blocks whose
//! times a normal effect of 10 to 30 % on their logarithm moves, bounds asked for with 95 % were
//! wrong in up to 9 % of the runs; of 60 %, where a few blocks have most of the long wakes, in
//! up to 19 %. Nothing is promised of what comes in few blocks: a run without one that has it tells
//! nothing of it, and its bounds are as wrong as what it lacks is large. [`unseen`] is the share of
//! blocks which that may be.

use super::statistics::{beta_share_below, clopper_pearson, student};
use doorbell_results::record::Histogram;

/// Wakes above a time, by block on average, from which on their counts show how
/// they heap. Counts of independent wakes are Poisson's: at a mean of 1 more than
/// a third of the blocks have none (e^-1), which few heaps look like too; at 5
/// fewer than one in a hundred (e^-5), so that blocks without any stand out.
pub const ENOUGH: u64 = 5;

/// How many wakes of one block there were, and how many of them took longer than the limit. A
/// histogram knows a time to 0.1 %: of those in the bin that holds the limit nobody can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    pub all: u64,
    /// Those that may have been longer than the limit.
    pub above: u64,
    pub surely: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Above {
    pub all: u64,
    /// Of them, those that may have been longer than the limit.
    pub above: u64,
    /// Of them, those that were.
    pub surely: u64,
    /// How many wakes tell as much as one independent one; at least 1.
    pub alike: f64,
    /// The share is above this with the confidence asked for.
    pub lower: f64,
    /// The share is below this with the confidence asked for; 1 if there were no wakes.
    pub upper: f64,
}

/// A limit, and how far off times may be that are held against it, picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub ps: u64,
    pub within_ps: u64,
}

impl From<u64> for Limit {
    /// Of times that are as they were taken.
    fn from(ps: u64) -> Self {
        Self { ps, within_ps: 0 }
    }
}

/// The times of `histogram` above `limit`.
pub fn above(histogram: &Histogram, limit: impl Into<Limit>) -> Count {
    let Limit { ps: limit_ps, within_ps } = limit.into();
    let [least, most] = [limit_ps.saturating_sub(within_ps), limit_ps.saturating_add(within_ps)];
    let inner = histogram.inner();
    let mut count = Count { all: histogram.count(), above: 0, surely: 0 };
    for bin in inner.iter_recorded() {
        let ps = bin.value_iterated_to();
        if inner.highest_equivalent(ps) > least {
            count.above += bin.count_at_value();
        }
        if inner.lowest_equivalent(ps) > most {
            count.surely += bin.count_at_value();
        }
    }
    count
}

/// The bounds of the share of wakes of all `blocks` above `limit`, each holding with `confidence`.
/// What may lie above counts against the limit for the upper bound, and for it for the lower. The
/// blocks are gone through up to three times, one at a time: a histogram is a third of a megabyte,
/// and there may be thousands.
pub fn share<Blocks: Iterator<Item = Histogram>>(
    blocks: impl Fn() -> Blocks,
    limit: impl Into<Limit>,
    confidence: f64,
) -> Above {
    let limit = limit.into();
    let mut whole = Histogram::new();
    blocks().for_each(|block| whole.add(&block));
    let counts: Vec<Count> = blocks().map(|block| above(&block, limit)).collect();
    let alike = alike(&whole, &counts, blocks, confidence);
    let sum = |of: fn(&Count) -> u64| counts.iter().map(of).sum::<u64>();
    let (all, above, surely) = (sum(|count| count.all), sum(|count| count.above), sum(|count| count.surely));
    let of = |number: u64| number as f64 / alike;
    let lower = clopper_pearson(of(all), of(surely), confidence).0;
    let upper = clopper_pearson(of(all), of(above), confidence).1;
    Above { all, above, surely, alike, lower, upper }
}

/// How many wakes tell as much as one independent one, by the `counts` above some time; at least 1.
fn alike<Blocks: Iterator<Item = Histogram>>(
    whole: &Histogram,
    counts: &[Count],
    blocks: impl Fn() -> Blocks,
    confidence: f64,
) -> f64 {
    let number = counts.iter().filter(|count| count.all > 0).count();
    let n = whole.count() as f64;
    let each = n / number.max(1) as f64;
    let enough = ENOUGH * number as u64;
    let seen = design_effect(counts);
    let effect = if counts.iter().map(|count| count.above).sum::<u64>() >= enough {
        seen
    } else if let Some(ps) = crowded(whole, enough) {
        let below: Vec<Count> = blocks().map(|block| above(&block, ps)).collect();
        seen.max(design_effect(&below))
    } else {
        return each.max(1.0);
    };
    if number < 2 {
        return each.max(1.0);
    }
    // At one half both sides of the ratio were 0.
    let freedom = [number as f64 - 1.0, n - 1.0].map(|freedom| student(confidence.max(0.501), freedom));
    (effect * (freedom[0] / freedom[1]).powi(2)).min(each).max(1.0)
}

/// The highest time that at least `enough` wakes lie above, if some do not.
fn crowded(whole: &Histogram, enough: u64) -> Option<u64> {
    let inner = whole.inner();
    let bins: Vec<(u64, u64)> =
        inner.iter_recorded().map(|bin| (bin.value_iterated_to(), bin.count_at_value())).collect();
    let mut longer = 0;
    let (ps, _) = bins.iter().rev().find(|(_, count)| {
        longer += count;
        longer >= enough
    })?;
    (longer < whole.count()).then(|| inner.lowest_equivalent(*ps).saturating_sub(1))
}

/// The ratio of the variance of the counts above a time to the binomial one; at least 1.
fn design_effect(blocks: &[Count]) -> f64 {
    let blocks: Vec<&Count> = blocks.iter().filter(|block| block.all > 0).collect();
    let all: f64 = blocks.iter().map(|block| block.all as f64).sum();
    let above: f64 = blocks.iter().map(|block| block.above as f64).sum();
    let (count, share) = (blocks.len() as f64, above / all);
    let binomial = share * (1.0 - share) / all;
    if blocks.len() < 2 || binomial.is_nan() || binomial <= 0.0 {
        return 1.0;
    }
    let squares: f64 =
        blocks.iter().map(|block| (block.above as f64 - share * block.all as f64).powi(2)).sum();
    (count / (count - 1.0) * squares / all.powi(2) / binomial).max(1.0)
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    pub estimate_ps: u64,
    /// It is no less than this, with the confidence asked for; none
    /// if there are too few wakes to say.
    pub lower_ps: Option<u64>,
    /// It is no more than this, with the confidence asked for; none
    /// if there are too few wakes to say.
    pub upper_ps: Option<u64>,
}

impl Bounds {
    /// The same of times that may be so far off.
    pub fn within(self, ps: u64) -> Self {
        let lower_ps = self.lower_ps.map(|lower| lower.saturating_sub(ps));
        Self { lower_ps, upper_ps: self.upper_ps.map(|upper| upper.saturating_add(ps)), ..self }
    }
}

/// The quantile `q` of all `blocks`, and its bounds, each holding with `confidence`; none of no
/// wakes. The blocks are gone through one at a time, as by [`share`].
pub fn bounds<Blocks: Iterator<Item = Histogram>>(
    blocks: impl Fn() -> Blocks,
    q: f64,
    confidence: f64,
) -> Option<Bounds> {
    let mut whole = Histogram::new();
    blocks().for_each(|block| whole.add(&block));
    let estimate_ps = whole.quantile(q);
    if whole.count() == 0 {
        return None;
    }
    // A time is known to its bin: what lies in the same one is not above.
    let bin_ends_ps = whole.inner().highest_equivalent(estimate_ps);
    let counts: Vec<Count> = blocks().map(|block| above(&block, bin_ends_ps)).collect();
    let effect = alike(&whole, &counts, &blocks, confidence);
    let n = whole.count() as f64 / effect;
    let left = 1.0 - q;
    // The most wakes that may lie above a time for the quantile to be
    // below it, and the fewest for it to be above.
    let inner = whole.inner();
    let bins: Vec<(u64, u64)> =
        inner.iter_recorded().map(|bin| (bin.value_iterated_to(), bin.count_at_value())).collect();
    let (mut lower_ps, mut upper_ps) = (None, None);
    let mut longer = 0_u64;
    for &(ps, count) in bins.iter().rev() {
        let k = longer as f64 / effect;
        if beta_share_below(left, k + 1.0, n - k) >= confidence {
            upper_ps = Some(inner.highest_equivalent(ps));
        }
        longer += count;
        let k = longer as f64 / effect;
        if beta_share_below(left, k, n - k + 1.0) <= 1.0 - confidence {
            // Shorter ones lie below both bounds.
            lower_ps = Some(inner.lowest_equivalent(ps));
            break;
        }
    }
    Some(Bounds { estimate_ps, lower_ps, upper_ps })
}

/// Independent wakes without one above a limit from which on the
/// quantile `q` is below it with `confidence`.
pub fn fewest(q: f64, confidence: f64) -> u64 {
    ((1.0 - confidence).ln() / q.ln()).ceil() as u64
}

/// With `confidence`, what comes in more than this share of blocks
/// would have come in one of so many.
pub fn unseen(blocks: usize, confidence: f64) -> f64 {
    1.0 - (1.0 - confidence).powf(1.0 / blocks.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of so many wakes around 5 µs, of which so many take 50.
    fn block(all: u64, long: u64) -> Histogram {
        let mut histogram = Histogram::new();
        (long..all).for_each(|sample| histogram.record(4_000_000 + sample * 1_000_000 / all));
        histogram.record_many(50_000_000, long);
        histogram
    }

    /// The bounds of the share above 20 µs in blocks of a thousand
    /// wakes, so many of which are long.
    fn shared(long: &[u64]) -> Above {
        share(|| long.iter().map(|long| block(1000, *long)), 20_000_000, 0.95)
    }

    #[test]
    fn without_wakes_nothing_is_known_and_how_many_are_needed_is_told() {
        assert_eq!(share(std::iter::empty, 1, 0.95).upper, 1.0);
        assert_eq!(fewest(0.999, 0.95), 2995);
    }

    #[test]
    fn stretches_of_long_wakes_tell_less_than_single_ones() {
        let mut heap = [0; 20];
        heap[7] = 40;
        let (even, heaped) = (shared(&[2; 20]), shared(&heap));
        // 1.729 and 1.645 are Student's quantiles for 19 degrees of freedom and for any number.
        assert!((even.alike / (1.729_f64 / 1.645).powi(2) - 1.0).abs() < 0.01, "{even:?}");
        assert_eq!((even.above, heaped.above), (40, 40));
        assert!(heaped.alike > 20.0, "{heaped:?}");
        assert!(heaped.upper > even.upper && heaped.lower < even.lower);
    }

    #[test]
    fn few_blocks_tell_less_than_many_of_as_many_wakes() {
        let alike: Vec<f64> = [2, 3, 5, 20, 200].map(|blocks| shared(&vec![0; blocks]).alike).into();
        // (t of B - 1 degrees / 1.645)²
        for (seen, table) in alike.iter().zip([14.73, 3.151, 1.680, 1.105, 1.010]) {
            assert!((seen / table - 1.0).abs() < 0.01, "{alike:?}");
        }
    }

    /// Where none were above the limit, or one, every wake counted as independent of all others.
    #[test]
    fn without_enough_above_the_limit_the_longest_wakes_show_how_they_heap() {
        let heaped = |block: u64, long: u64| {
            let mut histogram = Histogram::new();
            (0..1000).for_each(|sample| histogram.record(4_000_000 + sample * 1000));
            // The longest hundred below the limit are all of one block.
            histogram.record_many(15_000_000, if block == 3 { 100 } else { 0 });
            histogram.record_many(50_000_000, if block == 5 { long } else { 0 });
            histogram
        };
        for long in [0, 1] {
            let heaped = share(|| (0..20).map(|block| heaped(block, long)), 20_000_000, 0.95);
            let mut one = [0; 20];
            one[5] = long;
            let even = shared(&one);
            assert!(heaped.alike > 50.0 && even.alike < 1.2, "{heaped:?} {even:?}");
            assert!(heaped.upper > 10.0 * even.upper);
        }
        // All in one bin: nothing shows it.
        let mut same = Histogram::new();
        same.record_many(5_000_000, 1000);
        let same = share(|| (0..20).map(|_| same.clone()), 20_000_000, 0.95);
        assert_eq!(same.alike, 1000.0);
        assert!((same.upper - (1.0 - 0.05_f64.powf(1.0 / 20.0))).abs() < 1e-6, "{same:?}");
    }

    /// Draws from a known distribution and asks how often the bounds of its quantile were wrong.
    #[test]
    fn a_bound_that_holds_with_ninety_five_percent_is_wrong_in_at_most_one_of_twenty() {
        let (mut too_high, mut too_low, mut none) = (0, 0, 0);
        for seed in 0..60 {
            let mut random = fastrand::Rng::with_seed(seed);
            let blocks: Vec<Histogram> = (0..10)
                .map(|_| {
                    let mut histogram = Histogram::new();
                    // Exponential around 10 us: its 99th percentile is ln(100) times that.
                    (0..200).for_each(|_| histogram.record((-(1.0 - random.f64()).ln() * 1e7) as u64));
                    histogram
                })
                .collect();
            let bounds = bounds(|| blocks.iter().cloned(), 0.99, 0.95).unwrap();
            let truth = 100_f64.ln() * 1e7;
            none += u32::from(bounds.upper_ps.is_none() || bounds.lower_ps.is_none());
            too_low += u32::from(bounds.upper_ps.is_some_and(|upper| (upper as f64) < truth));
            too_high += u32::from(bounds.lower_ps.is_some_and(|lower| lower as f64 > truth));
        }
        assert!(too_low <= 7 && too_high <= 7 && none == 0, "{too_low} {too_high} {none} of 60");
    }

    /// One run of so many blocks, each with a normal effect of `spread` on the logarithm of its
    /// exponential times, and one in ten of its wakes ten times as long in every block that
    /// `heaped` draws: how often of 50 the true share was above the upper bound, and below the
    /// lower. Runs in which no block is heaped, though some are, count apart.
    fn wrong(number: u64, spread: f64, heaped: f64) -> ([u32; 2], u32) {
        const RUNS: u32 = 50;
        const EACH: u64 = 400;
        /// Long enough for whole numbers, short enough for a quick histogram.
        const MEAN: f64 = 100.0;
        const LIMIT: u64 = 300;
        // Twelve uniform draws are as good as normal here.
        let block = |random: &mut fastrand::Rng| {
            let normal = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            (MEAN * (spread * normal).exp(), random.f64() < heaped)
        };
        let longer = |mean: f64| (-((LIMIT + 1) as f64) / mean).exp();
        let share_of = |(mean, heap): (f64, bool)| {
            if heap { 0.9 * longer(mean) + 0.1 * longer(10.0 * mean) } else { longer(mean) }
        };
        let mut random = fastrand::Rng::with_seed(11);
        let truth = (0..20_000).map(|_| share_of(block(&mut random))).sum::<f64>() / 20_000.0;
        let (mut wrong, mut unseen) = ([0; 2], 0);
        for _ in 0..RUNS {
            let drawn: Vec<(f64, bool)> = (0..number).map(|_| block(&mut random)).collect();
            let blocks: Vec<Histogram> = drawn
                .iter()
                .map(|&(mean, heap)| {
                    let mut histogram = Histogram::new();
                    for _ in 0..EACH {
                        let factor = if heap && random.f64() < 0.1 { 10.0 } else { 1.0 };
                        let time = -(1.0 - random.f64()).ln() * mean * factor;
                        histogram.record((time as u64).clamp(1, 2000));
                    }
                    histogram
                })
                .collect();
            let share = share(|| blocks.iter().cloned(), LIMIT, 0.95);
            if heaped > 0.0 && !drawn.iter().any(|(_, heap)| *heap) {
                unseen += u32::from(share.upper < truth);
            } else {
                wrong[0] += u32::from(share.upper < truth);
                wrong[1] += u32::from(share.lower > truth);
            }
        }
        (wrong, unseen)
    }

    /// Independent draws alone had been tried, of which no block is unlike another.
    #[test]
    fn where_blocks_differ_the_bounds_are_wrong_in_at_most_six_of_fifty() {
        for number in [2, 3, 5, 20] {
            for (spread, heaped) in [(0.3, 0.0), (0.1, 0.3)] {
                let (wrong, _) = wrong(number, spread, heaped);
                assert!(wrong[0] <= 6 && wrong[1] <= 6, "{number} blocks, {spread}, {heaped}: {wrong:?}");
            }
        }
    }

    #[test]
    fn what_came_in_no_block_is_not_in_the_bounds_and_how_rare_that_is_is_told() {
        assert!(wrong(5, 0.0, 0.3).1 > 1, "the bounds hold even so: say so in their description");
        for (blocks, share) in [(1, 0.95), (2, 0.7764), (20, 0.1391)] {
            assert!((unseen(blocks, 0.95) - share).abs() < 1e-4);
        }
    }

    #[test]
    fn too_few_wakes_have_no_upper_bound() {
        let mut histogram = Histogram::new();
        (0..100).for_each(|sample| histogram.record(1_000_000 + sample * 10_000));
        let of = |q| bounds(|| std::iter::repeat_n(histogram.clone(), 10), q, 0.95).unwrap();
        assert_eq!(of(0.999).upper_ps, None);
        assert!(of(0.5).upper_ps.is_some());
        assert_eq!(bounds(std::iter::empty, 0.5, 0.95), None);
    }

    /// What may lie above the limit counted as if it did: a node failed for wakes that kept to it.
    #[test]
    fn a_bin_that_holds_the_limit_counts_for_the_upper_bound_and_not_for_the_lower() {
        let mut histogram = Histogram::new();
        histogram.record_many(20_000_000, 7);
        let inner = histogram.inner();
        let [low, high] = [inner.lowest_equivalent(20_000_000), inner.highest_equivalent(20_000_000)];
        let count = |limit_ps| {
            let count = above(&histogram, limit_ps);
            (count.above, count.surely)
        };
        assert_eq!([low - 1, low, high - 1, high].map(count), [(7, 7), (7, 0), (7, 0), (0, 0)]);
        let share = share(|| (0..4).map(|_| histogram.clone()), 20_000_000, 0.95);
        assert_eq!((share.lower, share.upper), (0.0, 1.0));
    }
}
