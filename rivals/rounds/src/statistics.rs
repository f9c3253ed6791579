// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantiles, and the ratio of two arms with an interval.

use crate::lot::Lot;

/// The value below which the share `q` of `values` lies. Sorts them. NaN if there are none.
pub fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * q).round() as usize).copied().unwrap_or(f64::NAN)
}

/// The ratio of two arms.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Median of the ratios of the rounds.
    pub middle: f64,
    /// Upper end.
    pub high: f64,
}

const RESAMPLES: usize = 4000;

impl Ratio {
    /// The median over rounds of `upper` / `lower`, both of the same round, with a 95 % bootstrap interval over rounds:
    /// what disturbed a whole round does not count.
    pub fn paired(upper: &[f64], lower: &[f64]) -> Self {
        let ratios: Vec<f64> = upper.iter().zip(lower).map(|(upper, lower)| upper / lower).collect();
        let middle = quantile(&mut ratios.clone(), 0.5);
        if ratios.is_empty() {
            return Self { low: middle, middle, high: middle };
        }
        let mut lot = Lot::new(ratios.len() as u64);
        let mut drawn: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let mut sample: Vec<f64> = ratios.iter().map(|_| ratios[lot.below(ratios.len())]).collect();
                quantile(&mut sample, 0.5)
            })
            .collect();
        Self { low: quantile(&mut drawn, 0.025), middle, high: quantile(&mut drawn, 0.975) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbance_that_slows_a_whole_round_leaves_the_ratio_alone() {
        let lower: Vec<f64> = (0..40).map(|round| if round % 3 == 0 { 300.0 } else { 100.0 }).collect();
        let upper: Vec<f64> = lower.iter().map(|value| value * 1.25).collect();
        let Ratio { low, middle, high } = Ratio::paired(&upper, &lower);
        assert!([low, middle, high].iter().all(|ratio| (ratio - 1.25).abs() < 1e-9));
    }

    #[test]
    fn the_interval_holds_the_median_and_widens_with_the_scatter() {
        let lower = vec![100.0; 50];
        let scattered =
            |width: f64| (0..50).map(|round| 100.0 + width * f64::from(round % 10)).collect::<Vec<_>>();
        let (narrow, wide) =
            (Ratio::paired(&scattered(1.0), &lower), Ratio::paired(&scattered(10.0), &lower));
        assert!(narrow.low <= narrow.middle && narrow.middle <= narrow.high);
        assert!(wide.high - wide.low > narrow.high - narrow.low);
    }

    #[test]
    fn a_quantile_of_nothing_is_no_number() {
        assert!(quantile(&mut [], 0.5).is_nan());
        assert_eq!(quantile(&mut [3.0, 1.0, 2.0], 0.5), 2.0);
    }
}
