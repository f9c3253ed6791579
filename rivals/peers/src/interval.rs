// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ratio of two medians and its interval, by the bootstrap over rounds.

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

/// A ratio and the bounds between which 95 % of the resampled ratios lie.
#[derive(Debug, Clone, Copy)]
pub struct Ratio {
    /// Our median over theirs.
    pub ratio: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// Resamples: enough that the bounds move by less than the last digit shown.
const RESAMPLES: usize = 4000;

/// Our median over theirs. Rounds are resampled whole: what both sides of a round had in common stays together.
pub fn ratio(theirs: &[f64], ours: &[f64]) -> Ratio {
    // The same figures give the same interval.
    let mut random = fastrand::Rng::with_seed(1);
    let rounds = theirs.len().min(ours.len());
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn: Vec<usize> = (0..rounds).map(|_| random.usize(..rounds)).collect();
            let of = |values: &[f64]| median(&drawn.iter().map(|&round| values[round]).collect::<Vec<_>>());
            of(ours) / of(theirs)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios[((RESAMPLES - 1) as f64 * share) as usize];
    Ratio { ratio: median(ours) / median(theirs), low: at(0.025), high: at(0.975) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rounds_have_the_ratio_one_whatever_the_drift_between_them() {
        let drifting = [1.0, 2.0, 3.0, 4.0, 5.0];
        let ratio = ratio(&drifting, &drifting);
        assert_eq!((ratio.ratio, ratio.low, ratio.high), (1.0, 1.0, 1.0));
    }

    #[test]
    fn the_interval_holds_the_ratio() {
        let ratio = ratio(&[10.0, 11.0, 9.0, 10.5], &[20.0, 21.0, 19.0, 22.0]);
        assert!(ratio.low <= ratio.ratio && ratio.ratio <= ratio.high);
        assert!(ratio.ratio > 1.9 && ratio.ratio < 2.1);
    }
}
