// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ratio of two figures over rounds, and its interval.

/// The middle value, or the mean of the two middle ones.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// How our figures stand to the peer's, and between which bounds with 95 % confidence.
#[derive(Debug, Clone, Copy)]
pub struct Ratio {
    /// Ours over theirs.
    pub ratio: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// The two-sided 95 % point of the normal distribution.
const NORMAL_95: f64 = 1.96;

/// The middle of the ratios of all rounds: the Hodges-Lehmann estimate on their logarithms, which is the median of the means
/// of all pairs of rounds, and the interval that belongs to it, the one of Wilcoxon's signed ranks (Hollander & Wolfe,
/// *Nonparametric Statistical Methods*, section 3.2 and 3.3, with the normal approximation of the ranks).
///
/// A ratio is taken within a round, so what both sides of a round had in common is out of it. The order within a round is
/// drawn by lot, so what is left is as likely to be to one side's favour as to the other's, as the ranks need it.
pub fn ratio(theirs: &[f64], ours: &[f64]) -> Ratio {
    let logarithms: Vec<f64> = theirs.iter().zip(ours).map(|(theirs, ours)| (ours / theirs).ln()).collect();
    let mut means: Vec<f64> = Vec::new();
    for (index, one) in logarithms.iter().enumerate() {
        means.extend(logarithms[..=index].iter().map(|other| f64::midpoint(*one, *other)));
    }
    means.sort_by(f64::total_cmp);
    let rounds = logarithms.len() as f64;
    let spread = NORMAL_95 * (rounds * (rounds + 1.0) * (2.0 * rounds + 1.0) / 24.0).sqrt();
    // Below the first mean there is nothing: fewer than six rounds cannot exclude anything at this confidence.
    let outer = (means.len() as f64 / 2.0 - spread).floor();
    let (low, high) = if outer < 1.0 || means.is_empty() {
        (0.0, f64::INFINITY)
    } else {
        let outer = outer as usize;
        (means[outer - 1].exp(), means[means.len() - outer].exp())
    };
    Ratio { ratio: median(&means).exp(), low, high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rounds_have_the_ratio_one_whatever_the_drift_between_them() {
        let drifting = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        let ratio = ratio(&drifting, &drifting);
        assert_eq!((ratio.ratio, ratio.low, ratio.high), (1.0, 1.0, 1.0));
    }

    #[test]
    fn three_rounds_exclude_nothing() {
        let ratio = ratio(&[1.0, 1.0, 1.0], &[2.0, 2.0, 2.0]);
        assert_eq!((ratio.low, ratio.high), (0.0, f64::INFINITY));
        assert!((ratio.ratio - 2.0).abs() < 1e-9);
    }

    /// Of six rounds the ranks give the least and the greatest mean of pairs: 2 / 64 is what lies outside.
    #[test]
    fn the_bounds_of_six_rounds_are_the_outermost() {
        let ratio = ratio(&[1.0; 6], &[1.0, 1.1, 1.2, 1.3, 1.4, 1.5]);
        assert!((ratio.low - 1.0).abs() < 1e-9 && (ratio.high - 1.5).abs() < 1e-9, "{ratio:?}");
    }

    /// A machine that is half as fast again for half of the runs, and a true ratio of 1.02.
    #[test]
    fn the_interval_holds_the_ratio_in_95_of_100_tries() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut run =
            |truth: f64| truth * if random.bool() { 1.5 } else { 1.0 } * (1.0 + 0.02 * random.f64());
        let held = (0..1000)
            .filter(|_| {
                let theirs: Vec<f64> = (0..60).map(|_| run(1.0)).collect();
                let ours: Vec<f64> = (0..60).map(|_| run(1.02)).collect();
                let ratio = ratio(&theirs, &ours);
                ratio.low <= 1.02 && 1.02 <= ratio.high
            })
            .count();
        assert!((930..=985).contains(&held), "{held} of 1000");
    }
}
