// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the variants of one run stand to each other, every pair of them judged together.

use super::by_block::together;
use super::ratio::Ratio;
use super::slices::{ERROR, Levels};
use doorbell_results::record::question::By;
use doorbell_results::record::{Quantity, Variant};
use std::collections::BTreeMap;

/// Variants that were judged together, by their places.
#[derive(Debug, Default)]
pub struct Versus {
    pub(super) levels: Levels,
    ratios: BTreeMap<(usize, usize), Ratio>,
}

impl Versus {
    /// What a variant takes, nanoseconds: the [level](super::slices::Levels::level) of its blocks,
    /// by whose ratio it stands to others. The median of all samples is that of whichever
    /// blocks had most of them.
    pub fn level_ns(&self, place: usize) -> Option<f64> {
        self.levels.level(place)
    }

    /// How many times as long `b` takes as `a`; none of a pair of too few blocks.
    pub fn ratio(&self, a: usize, b: usize) -> Option<Ratio> {
        let turned = || Some(self.ratios.get(&(b, a))?.inverse());
        self.ratios.get(&(a, b)).copied().or_else(turned)
    }
}

/// Judges every pair of `variants` by their medians of `quantity`: what is said of any two holds
/// with all that is said of others.
pub fn versus(variants: &[&Variant], quantity: Quantity) -> Versus {
    let all = 0..variants.len();
    let pairs: Vec<(usize, usize)> =
        all.clone().flat_map(|a| (a + 1..all.end).map(move |b| (a, b))).collect();
    versus_of(variants, quantity, &pairs)
}

/// The same of those pairs alone that are spoken of, whatever their figures are: the fewer, the
/// shorter their intervals.
pub fn versus_of(variants: &[&Variant], quantity: Quantity, pairs: &[(usize, usize)]) -> Versus {
    within(variants, quantity, pairs, ERROR)
}

/// The same, all intervals holding together but for the share `error` of runs.
pub(super) fn within(
    variants: &[&Variant],
    quantity: Quantity,
    pairs: &[(usize, usize)],
    error: f64,
) -> Versus {
    let levels = together(variants, quantity, By::P50);
    let ratios = levels.ratios(pairs, error);
    let ratios = pairs.iter().copied().zip(ratios).filter_map(|(pair, ratio)| Some((pair, ratio?)));
    Versus { ratios: ratios.collect(), levels }
}
