// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the variants of one run stand to each other, every pair of them judged together.

use super::by_block::samples;
use super::judge::{ERROR, Family, Ratio};
use doorbell_results::record::Variant;
use doorbell_results::record::question::By;
use doorbell_results::record::series::Quantity;
use std::collections::BTreeMap;

/// How many times as long the second of each pair of `variants` takes as the first, by their places; a pair of too few blocks has none.
pub fn versus(variants: &[&Variant], quantity: Quantity) -> BTreeMap<(usize, usize), Ratio> {
    let family = Family::alternated(&samples(variants, quantity, By::P50));
    let all = 0..variants.len();
    let pairs: Vec<(usize, usize)> =
        all.clone().flat_map(|a| (a + 1..all.end).map(move |b| (a, b))).collect();
    let ratios = family.ratios(&pairs, ERROR);
    let there = pairs.into_iter().zip(ratios).filter_map(|(pair, ratio)| Some((pair, ratio?)));
    there.flat_map(|((a, b), ratio)| [((a, b), ratio), ((b, a), ratio.inverse())]).collect()
}
