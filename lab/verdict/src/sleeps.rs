// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a longer sleep costs, and what holding idle states off buys: all of a run's wakes after
//! sleeps, judged together.

use std::collections::BTreeMap;

use super::ratio::Ratio;
use super::versus::within;
use doorbell_results::configuration::{Configuration, WaitPolicy};
use doorbell_results::record::{Quantity, Variant};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sleeps {
    pub slept: Vec<Slept>,
    pub held: Vec<Held>,
    /// What a wake of each configuration takes, nanoseconds: the
    /// [level](super::slices::Levels::level) of its blocks, by whose ratio it stands to others.
    levels_ns: Vec<(Configuration, f64)>,
}

impl Sleeps {
    pub fn level_ns(&self, configuration: &Configuration) -> Option<f64> {
        self.levels_ns.iter().find(|(known, _)| known == configuration).map(|(_, ns)| *ns)
    }
}

/// One mechanism's wake after sleeps of two lengths.
#[derive(Debug, Clone, PartialEq)]
pub struct Slept {
    pub subject: String,
    /// The shortest gap and the wake after it, nanoseconds; as all figures here a level.
    pub short_ns: (u64, f64),
    /// The longest gap and the wake after it, nanoseconds.
    pub long_ns: (u64, f64),
    /// The wake after the longest as a multiple of that after the shortest; none of too few blocks.
    pub ratio: Option<Ratio>,
}

/// One mechanism's wake after its longest sleep, with idle states held off and without.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    pub subject: String,
    pub gap_ns: u64,
    /// The wake with the machine as it is, nanoseconds.
    pub as_is_ns: f64,
    /// And with idle states held off.
    pub held_ns: f64,
    /// The wake as it is, as a multiple of that with idle states held off; none of too few blocks.
    pub ratio: Option<Ratio>,
}

/// What `variants` say; all intervals hold together but for the share `error` of runs.
pub fn sleeps(variants: &[Variant], error: f64) -> Sleeps {
    let blocks = |variant: &&Variant| {
        variant.configuration.pattern.one_way()
            && variant.configuration.wait == WaitPolicy::Block
            && !variant.is_harness()
    };
    let variants: Vec<&Variant> = variants.iter().filter(blocks).collect();
    let mut by_subject: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, variant) in variants.iter().enumerate() {
        by_subject.entry(&variant.configuration.subject).or_default().push(place);
    }
    let gap_ns = |place: &usize| variants[*place].configuration.pattern.gap_ns();
    let mut lengths = Vec::new();
    let mut holds = Vec::new();
    for places in by_subject.values_mut() {
        places.sort_by_key(gap_ns);
        let (held, plain): (Vec<usize>, Vec<usize>) =
            places.iter().partition(|place| variants[**place].configuration.latency_limit_us.is_some());
        if let (Some(&first), Some(&last)) = (plain.first(), plain.last())
            && gap_ns(&first) < gap_ns(&last)
        {
            lengths.push((first, last));
        }
        // After the longest sleep, where there is most to be saved.
        let mut longest = held.iter().filter_map(|held| {
            let same = plain.iter().find(|plain| gap_ns(plain) == gap_ns(held))?;
            Some((*held, *same))
        });
        holds.extend(longest.next_back());
    }
    let pairs: Vec<(usize, usize)> = lengths.iter().chain(&holds).copied().collect();
    let versus = within(&variants, Quantity::Wake, &pairs, error);
    let wake_ns = |place: usize| versus.level_ns(place);
    let slept = lengths.iter().filter_map(|&(short, long)| {
        Some(Slept {
            subject: variants[short].configuration.subject.clone(),
            short_ns: (gap_ns(&short), wake_ns(short)?),
            long_ns: (gap_ns(&long), wake_ns(long)?),
            ratio: versus.ratio(short, long),
        })
    });
    let held = holds.iter().filter_map(|&(held, same)| {
        Some(Held {
            subject: variants[held].configuration.subject.clone(),
            gap_ns: gap_ns(&held),
            as_is_ns: wake_ns(same)?,
            held_ns: wake_ns(held)?,
            ratio: versus.ratio(held, same),
        })
    });
    let level = |(place, variant): (usize, &&Variant)| Some((variant.configuration.clone(), wake_ns(place)?));
    Sleeps {
        slept: slept.collect(),
        held: held.collect(),
        levels_ns: variants.iter().enumerate().filter_map(level).collect(),
    }
}
