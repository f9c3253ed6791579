// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantiles, and the ratio of two variants with an interval.

use std::fmt::{Display, Formatter};

use doorbell_verdict::slices::{ERROR, Levels, Sample};

/// The value below which the share `q` of `values` lies. Sorts them. NaN if there are none.
pub fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * q).round() as usize).copied().unwrap_or(f64::NAN)
}

/// The ratio of two variants, shown as `1.03 [0.99, 1.08]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// The middle of the ratios of the rounds.
    pub middle: f64,
    /// Upper end.
    pub high: f64,
}

impl Ratio {
    /// `upper` / `lower`, both of the same round, as the lab judges what alternates in one run
    /// ([`doorbell_verdict::slices`]). What both sides of a round had in common is out of it.
    pub fn paired(upper: &[f64], lower: &[f64]) -> Self {
        let sample = |values: &[f64]| (0..).zip(values.iter().copied()).collect::<Sample>();
        let levels = Levels::of_blocks(&[sample(lower), sample(upper)]);
        match levels.ratios(&[(0, 1)], ERROR)[0] {
            Some(ratio) => Self { low: ratio.low, middle: ratio.estimate, high: ratio.high },
            // Too few rounds exclude nothing.
            None => {
                let level = |sample| levels.level(sample).unwrap_or(f64::NAN);
                Self { low: 0.0, middle: level(1) / level(0), high: f64::INFINITY }
            }
        }
    }

    /// Where the whole interval lies: the ratio alone is one draw of it.
    pub fn stands(self, least: f64, most: f64) -> Stands {
        if self.high < least {
            Stands::Below
        } else if self.low > most {
            Stands::Above
        } else if self.low >= least && self.high <= most {
            Stands::Within
        } else {
            Stands::Undecided
        }
    }
}

/// How an interval stands to two bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stands {
    Below,
    Within,
    Above,
    Undecided,
}

impl Display for Ratio {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { low, middle, high } = self;
        let digits = out.precision().unwrap_or(2);
        write!(out, "{middle:.digits$} [{low:.digits$}, {high:.digits$}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shuffle::Shuffle;

    #[test]
    fn interference_that_slows_a_whole_round_leaves_the_ratio_alone() {
        let lower: Vec<f64> = (0..40).map(|round| if round % 3 == 0 { 300.0 } else { 100.0 }).collect();
        let upper: Vec<f64> = lower.iter().map(|value| value * 1.25).collect();
        let Ratio { low, middle, high } = Ratio::paired(&upper, &lower);
        assert!([low, middle, high].iter().all(|ratio| (ratio - 1.25).abs() < 1e-9));
    }

    #[test]
    fn three_rounds_exclude_nothing() {
        let ratio = Ratio::paired(&[2.0, 2.0, 2.0], &[1.0, 1.0, 1.0]);
        assert_eq!((ratio.low, ratio.high), (0.0, f64::INFINITY));
        assert!((ratio.middle - 2.0).abs() < 1e-9);
    }

    /// A machine that is half as fast again for half of the runs, and a true ratio of 1.02.
    #[test]
    fn the_interval_holds_the_ratio_in_95_of_100_tries() {
        let mut shuffle = Shuffle::new(7);
        let mut run = |truth: f64| {
            truth
                * [1.0, 1.5][shuffle.below(2)]
                * (1.0 + 0.02 * shuffle.below(1 << 20) as f64 / f64::from(1 << 20))
        };
        let held = (0..60)
            .filter(|_| {
                let theirs: Vec<f64> = (0..60).map(|_| run(1.0)).collect();
                let ours: Vec<f64> = (0..60).map(|_| run(1.02)).collect();
                let ratio = Ratio::paired(&ours, &theirs);
                ratio.low <= 1.02 && 1.02 <= ratio.high
            })
            .count();
        assert!((53..=60).contains(&held), "{held} of 60");
    }

    /// A ratio of 1.00 whose interval went from 0.91 to 1.14 once read "yes".
    #[test]
    fn the_whole_interval_decides() {
        for (low, high, expected) in [
            (0.96, 1.04, Stands::Within),
            (0.95, 1.05, Stands::Within),
            (0.91, 1.14, Stands::Undecided),
            (0.94, 1.00, Stands::Undecided),
            (1.04, 1.20, Stands::Undecided),
            (0.80, 0.94, Stands::Below),
            (1.06, 1.07, Stands::Above),
            (f64::NAN, f64::NAN, Stands::Undecided),
        ] {
            let ratio = Ratio { low, middle: f64::midpoint(low, high), high };
            assert_eq!(ratio.stands(0.95, 1.05), expected, "[{low}, {high}]");
        }
    }

    #[test]
    fn a_quantile_of_nothing_is_no_number() {
        assert!(quantile(&mut [], 0.5).is_nan());
        assert_eq!(quantile(&mut [3.0, 1.0, 2.0], 0.5), 2.0);
    }
}
