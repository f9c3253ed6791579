// SPDX-License-Identifier: MIT OR Apache-2.0
//! What traced trials say together: each variant's paths with their stages, one wake to stand for
//! the median and one for each end of the tail, and what tracing itself cost.

use std::collections::BTreeMap;

use super::statistics::{half_interval, mean, median};
use doorbell_results::anatomy::{Counts, Hidden, Mark, Rank, Wake};
use doorbell_results::configuration::{Configuration, Trace};
use doorbell_results::record::{Histogram, Quantity, Record, ResultFile, Series, Variant};

#[derive(Debug)]
pub struct Dissected<'result> {
    pub configuration: &'result Configuration,
    /// The ways its wakes took, the most frequent first.
    pub paths: Vec<PathTimes>,
    pub counts: Counts,
    pub hidden: Vec<&'result Hidden>,
    /// Wakes to look at: of the trials' medians the one in the middle, so of their 99th
    /// percentiles, and the slowest.
    pub shown: Vec<&'result Wake>,
    /// What tracing cost, where the same configuration was run without.
    pub cost: Option<Cost>,
}

/// A path that wakes took, over all trials of a variant.
#[derive(Debug)]
pub struct PathTimes {
    pub marks: Vec<Mark>,
    /// Whether the waiter came to run on another CPU than the one from which it was woken.
    pub across: bool,
    /// Whether every coming of a side to a CPU was told; else a
    /// waiter without one may have left its CPU or not.
    pub comings_told: bool,
    /// The time up to each mark but the first.
    pub stages: BTreeMap<Mark, Histogram>,
    pub whole: Histogram,
}

/// The medians of the same trial with and without tracing, block by block, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// The median of the blocks' medians without.
    pub without_ns: f64,
    pub with_ns: f64,
    /// The mean difference of a block's pair.
    pub difference_ns: f64,
    /// How far it may be off to each side, at 95 %; none with fewer than three pairs.
    pub within_ns: Option<f64>,
    pub blocks: usize,
}

impl Cost {
    /// Whether the trials show that it is not nought. One pair or two
    /// show nothing, whatever they differ by.
    pub fn is_shown(&self) -> bool {
        self.within_ns.is_some_and(|within| self.difference_ns.abs() > within)
    }
}

impl PathTimes {
    pub fn name(&self) -> &'static str {
        let has = |mark| self.marks.contains(&mark);
        match (has(Mark::Issued), has(Mark::ScheduledIn), self.across) {
            (false, ..) => "the waiter was awake",
            (true, false, _) if self.comings_told => "woken on its way to sleep",
            (true, false, _) => "woken, the switch to the waiter not recorded",
            (true, true, false) => "on one CPU",
            (true, true, true) if has(Mark::InterruptSent) && has(Mark::Taken) => "across CPUs, by interrupt",
            (true, true, true) if has(Mark::InterruptSent) => {
                "across CPUs, interrupt sent and not seen taken"
            }
            (true, true, true) if has(Mark::Taken) => "across CPUs, no sending seen",
            (true, true, true) => "across CPUs, neither interrupt nor idle exit seen",
        }
    }
}

pub fn dissect(result: &ResultFile) -> Vec<Dissected<'_>> {
    let variants = result.variants();
    variants
        .iter()
        .filter(|variant| variant.configuration.trace == Some(Trace::Stages))
        .map(|variant| {
            let bare = Configuration { trace: None, ..variant.configuration.clone() };
            let bare = variants.iter().find(|other| *other.configuration == bare);
            Dissected { cost: bare.and_then(|bare| cost(variant, bare)), ..dissected(variant) }
        })
        .collect()
}

fn dissected<'result>(variant: &Variant<'result>) -> Dissected<'result> {
    let mut ways: BTreeMap<(Vec<Mark>, bool), PathTimes> = BTreeMap::new();
    let mut counts = Counts::default();
    let mut hidden: Vec<&Hidden> = Vec::new();
    let mut kept: Vec<&Wake> = Vec::new();
    for anatomy in variant.usable().filter_map(|record| record.anatomy.as_ref()) {
        let other = anatomy.counts;
        counts.stamped = counts.stamped.saturating_add(other.stamped);
        counts.cut = counts.cut.saturating_add(other.cut);
        counts.incomplete = counts.incomplete.saturating_add(other.incomplete);
        counts.merged = counts.merged.saturating_add(other.merged);
        counts.lost_events = counts.lost_events.saturating_add(other.lost_events);
        for one in &anatomy.hidden {
            if !hidden.contains(&one) {
                hidden.push(one);
            }
        }
        for path in &anatomy.paths {
            let way = ways.entry((path.marks.clone(), path.across)).or_insert_with(|| PathTimes {
                marks: path.marks.clone(),
                across: path.across,
                comings_told: true,
                stages: BTreeMap::new(),
                whole: Histogram::new(),
            });
            add(&mut way.whole, &path.whole);
            for (mark, series) in &path.stages {
                add(way.stages.entry(*mark).or_default(), series);
            }
        }
        kept.extend(&anatomy.kept);
    }
    let mut paths: Vec<PathTimes> = ways.into_values().collect();
    paths.sort_by_key(|way| std::cmp::Reverse(way.whole.count()));
    let comings_told = !hidden.iter().any(|hidden| hidden.mark == Mark::ScheduledIn);
    for way in &mut paths {
        way.comings_told = comings_told;
    }
    Dissected { configuration: variant.configuration, paths, counts, hidden, shown: shown(&kept), cost: None }
}

fn add(whole: &mut Histogram, series: &Series) {
    // The reader of result files has refused those that cannot be decoded.
    if let Ok(part) = series.counters() {
        whole.add_counters(&part);
    }
}

/// Of the wakes that trials kept: in the middle of their medians, in the middle of their 99th
/// percentiles, and the slowest.
fn shown<'result>(kept: &[&'result Wake]) -> Vec<&'result Wake> {
    [Rank::Median, Rank::P99, Rank::Worst]
        .into_iter()
        .filter_map(|rank| {
            let mut same: Vec<&Wake> = kept.iter().copied().filter(|wake| wake.rank == rank).collect();
            same.sort_by_key(|wake| wake.whole_ps());
            let last = same.len().checked_sub(1)?;
            same.get(if rank == Rank::Worst { last } else { last / 2 }).copied()
        })
        .collect()
}

fn cost(traced: &Variant, bare: &Variant) -> Option<Cost> {
    let medians = |variant: &Variant| -> BTreeMap<u32, f64> {
        let of = |record: &Record| Some((record.block, record.series.get(&Quantity::Wake)?.p50_ns));
        variant.usable().filter_map(of).collect()
    };
    let (with, without) = (medians(traced), medians(bare));
    let pairs: Vec<(f64, f64)> =
        with.iter().filter_map(|(block, with)| Some((*with, *without.get(block)?))).collect();
    let differences: Vec<f64> = pairs.iter().map(|(with, without)| with - without).collect();
    Some(Cost {
        without_ns: median(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>())?,
        with_ns: median(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>())?,
        difference_ns: mean(&differences),
        within_ns: (differences.len() >= 3).then(|| half_interval(&differences, 0.95)),
        blocks: differences.len(),
    })
}
