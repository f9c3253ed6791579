// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each variant of a run took in each block, to be judged together.

use super::best::Best;
use super::judge::{Family, Sample};
use super::ratio::{RELEVANT, Ratio};
use super::slices::{Levels, Slice};
use super::statistics::median;
use doorbell_results::configuration::Configuration;
use doorbell_results::record::Slice as RecordedSlice;
use doorbell_results::record::Variant;
use doorbell_results::record::question::By;
use doorbell_results::record::result::Beside;
use doorbell_results::record::series::Quantity;
use std::collections::BTreeMap;

/// What the variants of one run took, judged together: those that took turns by their slices, and others, which had trials of their own, block by block.
#[derive(Debug)]
pub struct Together {
    slices: Option<Levels>,
    blocks: Family,
}

impl Together {
    /// By `quantity`; slices are of what a variant is mostly asked for.
    pub fn of(variants: &[&Variant], quantity: Quantity, by: By) -> Self {
        let asked = by == By::P50 && variants.iter().all(|variant| variant.headline() == quantity);
        Self { slices: levels(variants, &[]).filter(|_| asked), blocks: family(variants, quantity, by) }
    }

    /// Of other figures than times: what each thing took in each block or pair.
    pub fn of_figures(variants: &[&Variant], figures: &[Sample]) -> Self {
        let logarithms = |(variant, sample): (&&Variant, &Sample)| match is_sliced(variant) {
            true => sample.iter().map(|(pair, value)| (*pair, value.ln())).collect(),
            false => BTreeMap::new(),
        };
        let slices = Levels::known(variants.iter().zip(figures).map(logarithms).collect());
        let any = variants.iter().any(|variant| is_sliced(variant));
        Self { slices: any.then_some(slices), blocks: Family::alternated(figures) }
    }

    /// What one takes, in the unit of its figures.
    pub fn level(&self, place: usize) -> Option<f64> {
        let sliced = self.slices.as_ref().and_then(|levels| levels.level_ns(place));
        sliced.or_else(|| self.blocks.level(place))
    }

    /// Whether all of these took turns.
    pub fn took_turns(&self, places: &[usize]) -> bool {
        let took = |levels: &Levels| places.iter().all(|place| levels.pairs(*place) > 0);
        self.slices.as_ref().is_some_and(took)
    }

    /// For each pair (a, b) how many times as long `b` takes as `a`; all intervals hold together but for the share `error` of runs.
    pub fn ratios(&self, pairs: &[(usize, usize)], error: f64) -> Vec<Option<Ratio>> {
        let took_turns = |(a, b): &(usize, usize)| self.took_turns(&[*a, *b]);
        let others: Vec<(usize, usize)> = pairs.iter().copied().filter(|pair| !took_turns(pair)).collect();
        let each = error / pairs.len().max(1) as f64;
        let mut blocks = self.blocks.ratios(&others, each * others.len() as f64).into_iter();
        let ratio = |pair: &(usize, usize)| match &self.slices {
            Some(levels) if took_turns(pair) => Some(levels.apart(pair.0, pair.1, each)?.ratio()),
            _ => blocks.next().flatten(),
        };
        pairs.iter().map(ratio).collect()
    }

    /// How those of `places` stand to the best of them; none unless all took turns.
    pub fn best(&self, places: &[usize], error: f64) -> Option<Best> {
        let levels = self.slices.as_ref().filter(|_| self.took_turns(places))?;
        Some(Best::of(levels, places, error, RELEVANT))
    }
}

fn is_sliced(variant: &Variant) -> bool {
    variant.usable().any(|record| !record.slices.is_empty())
}

/// The configurations that took turns with others of a run without having been asked for, each once.
pub fn companions(beside: &[Beside]) -> Vec<&Configuration> {
    let mut configurations: Vec<&Configuration> = Vec::new();
    for one in beside {
        if !configurations.contains(&&one.configuration) {
            configurations.push(&one.configuration);
        }
    }
    configurations
}

/// The slices of `variants`, by their places, and behind them those of their [`companions`]; none if no variant has any.
pub fn levels(variants: &[&Variant], beside: &[Beside]) -> Option<Levels> {
    if !variants.iter().any(|variant| is_sliced(variant)) {
        return None;
    }
    let mut slices = Vec::new();
    let mut add = |thing: usize, pair: u32, recorded: &[RecordedSlice]| {
        slices.extend(recorded.iter().map(|&RecordedSlice { turn, place, mean_ns, .. }| Slice {
            thing,
            pair,
            turn,
            place,
            mean_ns,
        }));
    };
    for (thing, variant) in variants.iter().enumerate() {
        variant.usable().for_each(|record| add(thing, record.block, &record.slices));
    }
    let companions = companions(beside);
    for one in beside {
        let place = companions.iter().position(|companion| **companion == one.configuration);
        place.into_iter().for_each(|place| add(variants.len() + place, one.block, &one.slices));
    }
    Some(Levels::of(variants.len() + companions.len(), &slices))
}

/// What `variants` took in the blocks of one run, to be judged together: see [`samples`].
pub fn family(variants: &[&Variant], quantity: Quantity, by: By) -> Family {
    let referred = variants.iter().map(|variant| alike(variants) && is_referred(variant)).collect();
    Family::alternated(&samples(variants, quantity, by)).referred(referred)
}

/// Whether what the reference runs under is no part of what differs.
fn alike(variants: &[&Variant]) -> bool {
    let under = |variant: &&Variant| {
        let configuration = variant.configuration;
        (configuration.load.clone(), configuration.scheduler, configuration.latency_limit_us)
    };
    variants.windows(2).all(|pair| under(&pair[0]) == under(&pair[1]))
}

/// What each of `variants` took in each block by its median or its 99th percentile, nanoseconds.
///
/// What had a reference inside its trials is the multiple of that, in the unit of the others: times what the reference took on that
/// placement in the middle of the run. So what a trial's own moment made of it is out of it, and it can be held against what has none.
/// Where they differ in what the reference runs under as well, such as a load, its multiple would leave out what is asked, and all are
/// taken as measured.
pub fn samples(variants: &[&Variant], quantity: Quantity, by: By) -> Vec<Sample> {
    let alike = alike(variants);
    variants
        .iter()
        .map(|variant| {
            let levels: Vec<f64> = variants
                .iter()
                .filter(|other| other.configuration.placement == variant.configuration.placement)
                .flat_map(|other| other.usable().filter_map(|record| Some(record.reference?.round_trip_ns)))
                .collect();
            let usual = median(&levels).filter(|_| alike && is_referred(variant));
            variant
                .usable()
                .filter_map(|record| {
                    let series = record.series.get(&quantity)?;
                    let figure = match (by, usual) {
                        (By::P50, Some(usual)) => record.reference?.ratio * usual,
                        (By::P99, Some(usual)) => series.p99_ns * usual / record.reference?.round_trip_ns,
                        (By::P50, None) => series.p50_ns,
                        (By::P99, None) => series.p99_ns,
                    };
                    Some((record.block, figure))
                })
                .collect()
        })
        .collect()
}

/// The times of a variant at quantiles that rise, picoseconds: at `place` the level that its ratios are of, else that of all samples.
///
/// A level weighs every block alike, and all samples together weigh one by its samples: a block that others held up has few. So the two can
/// contradict each other, and of the others none counts as less than what it stands above, or more than what it stands below.
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

/// Whether most of a variant's trials had a reference: a busy trial may have been too short of slices.
pub fn is_referred(variant: &Variant) -> bool {
    let with = variant.usable().filter(|record| record.reference.is_some()).count();
    with > 0 && with * 4 >= variant.usable().count() * 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::Scheduler;
    use doorbell_results::record::{Reference, sample};

    #[test]
    fn what_a_slow_moment_did_to_a_trial_is_out_of_what_had_a_reference_beside_it() {
        let configurations = ["futex", "spin"].map(sample::configuration);
        let mut result =
            sample::result(&configurations, 8, |_, block| if block == 3 { 20_000.0 } else { 16_000.0 });
        for record in result.records.iter_mut().filter(|record| record.configuration.subject == "futex") {
            let slow = if record.block == 3 { 1.25 } else { 1.0 };
            record.reference =
                Some(Reference { slices: 10, rounds: 30, round_trip_ns: 8000.0 * slow, ratio: 2.0 });
        }
        let variants = result.variants();
        let variants: Vec<&Variant> = variants.iter().collect();
        let samples = samples(&variants, Quantity::RoundTrip, By::P50);
        assert!(samples[0].values().all(|ns| (ns - 16_000.0).abs() < 1e-6), "{samples:?}");
        assert!(samples[1][&3] > 1.2 * samples[1][&2]);
    }

    /// "5.69 µs under load and 4.15 µs on an idle machine: 0.95 times as long": the reference ran under the load too.
    #[test]
    fn what_the_reference_runs_under_as_well_is_not_taken_out() {
        let idle = sample::configuration("futex");
        let mut other = idle.clone();
        other.scheduler = Scheduler::Fifo;
        let mut result = sample::result(&[idle, other.clone()], 8, |configuration, _| {
            if *configuration == other { 24_000.0 } else { 16_000.0 }
        });
        for record in &mut result.records {
            let round_trip_ns = if record.configuration == other { 12_000.0 } else { 8_000.0 };
            record.reference = Some(Reference { slices: 10, rounds: 30, round_trip_ns, ratio: 2.0 });
        }
        let variants = result.variants();
        let variants: Vec<&Variant> = variants.iter().collect();
        let samples = samples(&variants, Quantity::RoundTrip, By::P50);
        let ratio = samples[1][&0] / samples[0][&0];
        assert!((ratio / 1.5 - 1.0).abs() < 0.01, "{samples:?}");
    }
}
