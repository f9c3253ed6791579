// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds of a quantile, and of the share of wakes above a limit, that hold whatever the distribution of times.
//!
//! SUMMARY: of `n` wakes `k` took longer than a limit. With the asked-for confidence the share of all wakes that do lies
//! below [`Above::upper`] and above [`Above::lower`]. A quantile is below the limit with that confidence if the upper bound
//! of the share is no more than what the quantile leaves above it.
//!
//! DETAILS: the bounds are those of C. J. Clopper and E. S. Pearson, *The use of confidence or fiducial limits illustrated in
//! the case of the binomial* (Biometrika 26, 1934): the upper one is the share `p` at which `I(p; k + 1, n - k)`, the regularised
//! incomplete beta function, equals the confidence. With `k = 0` that is `1 - (1 - confidence)^(1/n)`, about `3 / n` at 95 %
//! (J. A. Hanley, A. Lippman-Hand, *If nothing goes wrong, is everything all right?*, JAMA 249, 1983). Turned round, it is the
//! bound of a quantile by an order statistic (H. A. David, H. N. Nagaraja, *Order Statistics*, 2003, §7.1).
//!
//! Wakes near each other in time are alike, so `n` of them tell less than `n` independent ones. How much less is seen in how
//! the count above the limit differs from block to block: the ratio of that variance to the binomial one, L. Kish's design
//! effect, divides both `n` and `k` (E. L. Korn, B. I. Graubard, *Confidence intervals for proportions with small expected
//! number of positive counts estimated from survey data*, Survey Methodology 24, 1998). Where nothing was above the limit it
//! cannot be seen, and is taken to be 1.

use crate::record::Histogram;

/// How many wakes of one block there were, and how many of them took longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// All.
    pub all: u64,
    /// Longer than the limit.
    pub above: u64,
}

/// What is known of the share of wakes above a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Above {
    /// Wakes.
    pub all: u64,
    /// Of them, longer than the limit.
    pub above: u64,
    /// How many wakes tell as much as one independent one; at least 1.
    pub design_effect: f64,
    /// The share is above this with the confidence asked for.
    pub lower: f64,
    /// The share is below this with the confidence asked for; 1 if there were no wakes.
    pub upper: f64,
}

/// The times of `histogram` above `limit_ps`: those whose bin may hold longer ones, so that an error of 0.1 % counts against the
/// limit and never for it.
pub fn above(histogram: &Histogram, limit_ps: u64) -> Count {
    let inner = histogram.inner();
    let longer =
        inner.iter_recorded().filter(|bin| inner.highest_equivalent(bin.value_iterated_to()) > limit_ps);
    Count { all: histogram.count(), above: longer.map(|bin| bin.count_at_value()).sum() }
}

/// The bounds of the share, from the counts of each block, each holding with `confidence`.
pub fn share(blocks: &[Count], confidence: f64) -> Above {
    let all: u64 = blocks.iter().map(|block| block.all).sum();
    let above: u64 = blocks.iter().map(|block| block.above).sum();
    let design_effect = design_effect(blocks);
    let (n, k) = (all as f64 / design_effect, above as f64 / design_effect);
    let lower = if above == 0 { 0.0 } else { beta_quantile(1.0 - confidence, k, n - k + 1.0) };
    let upper = if above == all { 1.0 } else { beta_quantile(confidence, k + 1.0, n - k) };
    Above { all, above, design_effect, lower, upper }
}

/// How many wakes tell as much as one independent one, by how the share above differs from block to block.
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

/// What is known of a quantile, picoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// As measured.
    pub estimate_ps: u64,
    /// It is no less than this, with the confidence asked for; none if there are too few wakes to say.
    pub lower_ps: Option<u64>,
    /// It is no more than this, with the confidence asked for; none if there are too few wakes to say.
    pub upper_ps: Option<u64>,
}

/// The quantile `q` of all `blocks`, and its bounds, each holding with `confidence`; none of no wakes. The blocks are gone through
/// twice, one at a time: a histogram is a third of a megabyte, and there may be thousands.
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
    let counts: Vec<Count> = blocks().map(|block| above(&block, estimate_ps)).collect();
    let effect = design_effect(&counts);
    let n = whole.count() as f64 / effect;
    let left = 1.0 - q;
    // The most wakes that may lie above a time for the quantile to be below it, and the fewest for it to be above.
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

/// Independent wakes without one above a limit from which on the quantile `q` is below it with `confidence`.
pub fn fewest(q: f64, confidence: f64) -> u64 {
    ((1.0 - confidence).ln() / q.ln()).ceil() as u64
}

/// The `p` below which the beta distribution with parameters `a`, `b` has the share `share`: bisection, which is slow, exact,
/// and called a handful of times.
fn beta_quantile(share: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if beta_share_below(middle, a, b) < share { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The regularised incomplete beta function `I(x; a, b)` by its continued fraction (Abramowitz and Stegun, 26.5.8), evaluated
/// from the front by Lentz's method (W. J. Lentz, Applied Optics 15, 1976).
fn beta_share_below(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || a <= 0.0 {
        return if a <= 0.0 { 1.0 } else { 0.0 };
    }
    if x >= 1.0 || b <= 0.0 {
        return if x >= 1.0 { 1.0 } else { 0.0 };
    }
    // The fraction converges fast on this side of the mean; beyond it the other tail is taken.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_share_below(1.0 - x, b, a);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    let tiny = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut c, mut d) = (1.0, 1.0 / tiny(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for step in 1..10_000 {
        let m = f64::from(step);
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / tiny(1.0 + numerator * d);
            c = tiny(1.0 + numerator / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    (front * fraction).clamp(0.0, 1.0)
}

/// The logarithm of the gamma function, for what is above 0: Stirling's series (Abramowitz and Stegun, 6.1.41) from 10 on, and
/// the recurrence below.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut below) = (x, 0.0);
    while x < 10.0 {
        below += x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series = 1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series / x - below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn once(all: u64, above: u64) -> Vec<Count> {
        vec![Count { all, above }]
    }

    #[test]
    fn the_bounds_are_clopper_and_pearsons() {
        // Two-sided 95 % intervals of printed tables, each bound of which holds with 97.5 %.
        for (above, all, low, high) in [
            (1, 10, 0.0025, 0.4450),
            (5, 20, 0.0866, 0.4910),
            (50, 100, 0.3983, 0.6017),
            (2, 50, 0.0049, 0.1371),
        ] {
            let bounds = share(&once(all, above), 0.975);
            assert!((bounds.lower - low).abs() < 1e-4, "{above} of {all}: {bounds:?}");
            assert!((bounds.upper - high).abs() < 1e-4, "{above} of {all}: {bounds:?}");
        }
    }

    #[test]
    fn without_one_above_the_bound_is_that_of_three() {
        for all in [10, 1000, 3_000_000] {
            let bound = share(&once(all, 0), 0.95).upper;
            let exact = 1.0 - 0.05_f64.powf(1.0 / all as f64);
            assert!((bound / exact - 1.0).abs() < 1e-6, "{all}: {bound} against {exact}");
        }
        assert_eq!(share(&[], 0.95).upper, 1.0);
        assert_eq!(fewest(0.999, 0.95), 2995);
    }

    #[test]
    fn stretches_of_long_wakes_tell_less_than_single_ones() {
        let even: Vec<Count> = (0..20).map(|_| Count { all: 1000, above: 2 }).collect();
        let mut heaped: Vec<Count> = (0..20).map(|_| Count { all: 1000, above: 0 }).collect();
        heaped[7].above = 40;
        let (even, heaped) = (share(&even, 0.95), share(&heaped, 0.95));
        assert_eq!((even.above, even.design_effect), (40, 1.0));
        assert!(heaped.design_effect > 20.0, "{heaped:?}");
        assert!(heaped.upper > even.upper && heaped.lower < even.lower);
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

    #[test]
    fn too_few_wakes_have_no_upper_bound() {
        let mut histogram = Histogram::new();
        (0..100).for_each(|sample| histogram.record(1_000_000 + sample * 10_000));
        let of = |q| bounds(|| std::iter::once(histogram.clone()), q, 0.95).unwrap();
        assert_eq!(of(0.999).upper_ps, None);
        assert!(of(0.5).upper_ps.is_some());
        assert_eq!(bounds(std::iter::empty, 0.5, 0.95), None);
    }

    #[test]
    fn a_bin_that_may_hold_longer_times_counts_as_above() {
        let mut histogram = Histogram::new();
        histogram.record_many(20_000_000, 7);
        assert_eq!(above(&histogram, 20_000_000).above, 7, "the bin reaches 0.05 % further");
        assert_eq!(above(&histogram, 20_020_000).above, 0);
    }
}
