// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantiles, and the ratio of two arms with an interval.

/// The value below which the share `q` of `values` lies. Sorts them.
pub fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * q).round() as usize).copied().unwrap_or(f64::NAN)
}

/// The ratio of two arms.
pub struct Ratio {
    pub low: f64,
    pub middle: f64,
    pub high: f64,
}

const RESAMPLES: usize = 4000;

impl Ratio {
    /// The ratio of the medians over blocks, and a 95 % bootstrap interval that draws pairs of neighbouring blocks
    /// together, so that what disturbed both does not count.
    pub fn of(upper: &[f64], lower: &[f64]) -> Self {
        let ratio = |pick: &mut dyn FnMut() -> usize| {
            let picked: Vec<usize> = upper.iter().map(|_| pick()).collect();
            let median =
                |values: &[f64]| quantile(&mut picked.iter().map(|&at| values[at]).collect::<Vec<_>>(), 0.5);
            median(upper) / median(lower)
        };
        let mut next = 0;
        let middle = ratio(&mut || {
            next += 1;
            next - 1
        });
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut drawn: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                ratio(&mut || {
                    seed ^= seed << 13;
                    seed ^= seed >> 7;
                    seed ^= seed << 17;
                    (seed % upper.len() as u64) as usize
                })
            })
            .collect();
        Self { low: quantile(&mut drawn, 0.025), middle, high: quantile(&mut drawn, 0.975) }
    }
}
