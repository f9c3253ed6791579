// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each variant of a run took in each block, to be judged together.

use super::slices::{Levels, Sample, Slice};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::question::By;
use doorbell_results::record::result::Beside;
use doorbell_results::record::subject::Contexts;
use doorbell_results::record::{Quantity, Record, Slice as RecordedSlice, Variant};

/// What the variants of one run took by `quantity`, to be judged together: those that took turns by
/// their slices, which are of what a variant is mostly asked for, and others, which had trials of
/// their own, block by block.
pub fn together(variants: &[&Variant], quantity: Quantity, by: By) -> Levels {
    let samples = samples(variants, quantity, by);
    let asked = by == By::P50 && variants.iter().all(|variant| variant.headline() == quantity);
    match levels(variants, &[]).filter(|_| asked) {
        Some(levels) => levels.with_blocks(&samples),
        None => Levels::of_blocks(&samples),
    }
}

/// The configurations that took turns with others of a run without
/// having been asked for, each once.
pub fn companions(beside: &[Beside]) -> Vec<&Configuration> {
    let mut configurations: Vec<&Configuration> = Vec::new();
    for one in beside {
        if !configurations.contains(&&one.configuration) {
            configurations.push(&one.configuration);
        }
    }
    configurations
}

/// The slices of `variants`, by their places, and after them those
/// of their [`companions`]; none if no variant has any.
pub fn levels(variants: &[&Variant], beside: &[Beside]) -> Option<Levels> {
    if variants.iter().flat_map(|variant| variant.usable()).all(|record| record.slices.is_empty()) {
        return None;
    }
    let mut slices = Vec::new();
    let mut add = |thing: usize, configuration: &Configuration, pair: u32, recorded: &[RecordedSlice]| {
        // Two processes and two threads of one block each count their own turns, which are no
        // neighbours of each other.
        let threads = u64::from(configuration.contexts == Contexts::Threads);
        slices.extend(recorded.iter().map(|&RecordedSlice { turn, place, middle_ns, .. }| Slice {
            thing,
            pair,
            turn: 2 * u64::from(turn) + threads,
            place,
            middle_ns,
        }));
    };
    for (thing, variant) in variants.iter().enumerate() {
        let records = variant.usable();
        records.for_each(|record| add(thing, variant.configuration, record.block, &record.slices));
    }
    let companions = companions(beside);
    for one in beside {
        let place = companions.iter().position(|companion| **companion == one.configuration);
        let thing = place.map(|place| variants.len() + place);
        thing.into_iter().for_each(|thing| add(thing, &one.configuration, one.block, &one.slices));
    }
    Some(Levels::of(variants.len() + companions.len(), &slices))
}

/// What each of `variants` took in each block by its median or its 99th percentile, nanoseconds.
pub fn samples(variants: &[&Variant], quantity: Quantity, by: By) -> Vec<Sample> {
    let figure = |record: &Record| {
        let series = record.series.get(&quantity)?;
        let ns = match by {
            By::P50 => series.p50_ns,
            By::P99 => series.p99_ns,
        };
        Some((record.block, ns))
    };
    variants.iter().map(|variant| variant.usable().filter_map(figure).collect()).collect()
}

/// The times of a variant at quantiles that rise, picoseconds: at `place` the level that its ratios
/// are of, else that of all samples.
///
/// A level weighs every block alike, and all samples together weigh one by its samples: a block
/// that others held up has few. So the two can contradict each other, and of the others none counts
/// as less than what it stands above, or more than what it stands below.
pub fn beside<const N: usize>(
    variant: &Variant,
    quantity: Quantity,
    of: [f64; N],
    (place, level_ps): (usize, u64),
) -> Option<[u64; N]> {
    let mut times = variant.quantiles_ps(quantity, of)?;
    times[place] = level_ps;
    times[..place].iter_mut().for_each(|ps| *ps = (*ps).min(level_ps));
    times[place..].iter_mut().for_each(|ps| *ps = (*ps).max(level_ps));
    Some(times)
}
