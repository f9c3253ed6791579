// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of several variants of one run is best, and which were not shown to be worse.
//!
//! SUMMARY: the best is the one with the lowest level. Another is called worse only if, block by block, it was above the
//! best by more than chance makes blocks differ. Those that were not stay beside the best; the truly best variant is among them
//! in at least 19 of 20 contests, whoever leads.
//!
//! DETAILS: variants of one run alternate within each block, so what the machine did to a block it did to all: the difference
//! of two variants is taken block by block, and what they share falls out. Its level is a trimmed mean, its standard error comes
//! from resampling the blocks in stretches of neighbours (see [`super::statistics`]). That the best was chosen from the same
//! figures does no harm: the truly best variant is left out only if some variant is shown to be below it, and with `k` variants each
//! of those `k - 1` mistakes has a chance of 5 % / (k - 1) (S. S. Gupta, *On some multiple decision (selection and ranking)
//! rules*, Technometrics 7, 1965).

use std::collections::BTreeMap;

use super::compare::Ratio;
use super::statistics::{reach, resample, standard_error, stretch, trimmed_mean};
use doorbell_results::plan::FEWEST_BLOCKS;

/// The chance that the truly best variant is not among those that are left.
const ERROR: f64 = 0.05;

/// Resamplings for a standard error, whose own error is then about 3 %.
const RESAMPLINGS: usize = 500;

/// What a variant had in each block, all above 0; less is better.
pub type Blocks = BTreeMap<u32, f64>;

#[derive(Debug, Clone, PartialEq)]
pub struct Contest {
    /// The variants by their places in what was given, the best first.
    pub order: Vec<usize>,
    /// Each variant's level, in the same order.
    pub levels: Vec<f64>,
    /// How much more each has than the best, in the same order without the best; none where too few blocks have both.
    pub ratios: Vec<Option<Ratio>>,
}

impl Contest {
    /// The places of the variants that were not shown to be worse than the best, the best among them.
    pub fn as_good(&self) -> Vec<usize> {
        let rest = self.order[1..].iter().zip(&self.ratios);
        let open = rest.filter(|(_, ratio)| ratio.is_none_or(|ratio| ratio.low <= 1.0));
        self.order[..1].iter().chain(open.map(|(variant, _)| variant)).copied().collect()
    }
}

/// Ranks `variants`; none if there are none with figures.
pub fn contest(variants: &[Blocks]) -> Option<Contest> {
    let level = |blocks: &Blocks| {
        let logarithms: Vec<f64> = blocks.values().map(|value| value.ln()).collect();
        trimmed_mean(&logarithms).filter(|level| level.is_finite())
    };
    let mut ranked: Vec<(usize, f64)> =
        variants.iter().enumerate().filter_map(|(variant, blocks)| Some((variant, level(blocks)?))).collect();
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (best, rest) = ranked.split_first()?;
    let confidence = 1.0 - ERROR / rest.len().max(1) as f64;
    Some(Contest {
        order: ranked.iter().map(|(variant, _)| *variant).collect(),
        levels: ranked.iter().map(|(_, level)| level.exp()).collect(),
        ratios: rest
            .iter()
            .map(|(variant, _)| ratio(&variants[best.0], &variants[*variant], confidence))
            .collect(),
    })
}

/// `other` as a multiple of `best` over the blocks that both have; none of too few.
pub fn ratio(best: &Blocks, other: &Blocks, confidence: f64) -> Option<Ratio> {
    let both = other.iter().filter_map(|(block, value)| Some((value / best.get(block)?).ln()));
    let differences: Vec<f64> = both.filter(|difference| difference.is_finite()).collect();
    let count = differences.len();
    if count < FEWEST_BLOCKS as usize {
        return None;
    }
    let estimate = trimmed_mean(&differences)?;
    let mut random = fastrand::Rng::with_seed(1);
    let error = standard_error(RESAMPLINGS, || {
        let drawn: Vec<f64> = resample(count, &mut random).iter().map(|&index| differences[index]).collect();
        trimmed_mean(&drawn)
    })?;
    // Resampling sees the spread of n blocks as if their mean were known: it lacks the factor n / (n - l).
    let error = error * (count as f64 / count.saturating_sub(stretch(count)).max(1) as f64).sqrt();
    // A trimmed mean has the freedom of the blocks it keeps (K. K. Yuen, Biometrika 61, 1974).
    let freedom = (count - count / 5 * 2) as f64 - 1.0;
    let reach = reach(confidence, freedom) * error;
    Some(Ratio { estimate: estimate.exp(), low: (estimate - reach).exp(), high: (estimate + reach).exp() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(random: &mut fastrand::Rng) -> f64 {
        (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
    }

    /// Variants of the given levels whose blocks share a drift of 20 % and have 3 % of their own.
    fn variants(levels: &[f64], blocks: u32, seed: u64) -> Vec<Blocks> {
        let mut random = fastrand::Rng::with_seed(seed);
        let drift: Vec<f64> = (0..blocks).map(|_| 0.2 * normal(&mut random)).collect();
        let variant = |level: &f64, random: &mut fastrand::Rng| {
            let blocks = drift.iter().zip(0..);
            blocks.map(|(drift, block)| (block, level * (drift + 0.03 * normal(random)).exp())).collect()
        };
        levels.iter().map(|level| variant(level, &mut random)).collect()
    }

    #[test]
    fn the_truly_best_stays_in_nineteen_of_twenty_contests_of_equals() {
        for blocks in [5, 12] {
            let left = (0..60).filter(|seed| {
                let contest = contest(&variants(&[10.0; 8], blocks, *seed)).unwrap();
                // All are equal: any of them may be called the truly best.
                contest.as_good().contains(&3)
            });
            let left = left.count();
            assert!(left >= 55, "{left} of 60 with {blocks} blocks");
        }
    }

    #[test]
    fn one_in_ten_is_told_through_a_drift_of_twenty_percent() {
        let told = (0..40).filter(|seed| {
            let contest = contest(&variants(&[11.0, 10.0, 15.0], 10, *seed)).unwrap();
            contest.order == [1, 0, 2] && contest.as_good() == [1]
        });
        let told = told.count();
        assert!(told >= 38, "{told} of 40");
    }

    #[test]
    fn too_few_blocks_tell_nothing_apart() {
        let contest = contest(&variants(&[10.0, 100.0], 3, 1)).unwrap();
        assert_eq!(contest.as_good(), [0, 1]);
        assert_eq!(contest.ratios, [None]);
    }

    #[test]
    fn a_variant_without_figures_takes_no_part() {
        assert_eq!(contest(&[]), None);
        let contest = contest(&[Blocks::new(), Blocks::from([(0, 5.0)])]).unwrap();
        assert_eq!((contest.order, contest.ratios), (vec![1], vec![]));
    }
}
