// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worst wakes of a run, each with its cause where the evidence supports one.

use super::cause::{self, Found, longest};
use doorbell_results::anatomy::{Hidden, Mark, Wake};
use doorbell_results::configuration::{Configuration, Trace};
use doorbell_results::record::{Quantity, ResultFile};

/// The worst wakes of a configuration.
#[derive(Debug)]
pub struct Slow<'result> {
    pub configuration: &'result Configuration,
    /// The threshold that was asked for, nanoseconds; 0 for none.
    pub above_ns: u64,
    /// Wakes beyond it, kept or not.
    pub above: u64,
    pub wakes: u64,
    /// The median wake, picoseconds.
    pub median_ps: f64,
    /// Slow wakes of which events were missing.
    pub incomplete: u64,
    /// Marks that cannot be seen here.
    pub hidden: Vec<&'result Hidden>,
    /// Those that were kept, the slowest first.
    pub kept: Vec<Explained<'result>>,
}

#[derive(Debug)]
pub struct Explained<'result> {
    pub wake: &'result Wake,
    /// What made it slow; none where nothing that was seen covers enough of it.
    pub verdict: Option<Found>,
    /// Everything that was found, also what covers too little.
    pub found: Vec<Found>,
    /// The stage that took longest, picoseconds.
    pub longest: Option<(Mark, u64)>,
}

pub fn why(result: &ResultFile) -> Vec<Slow<'_>> {
    result
        .variants()
        .iter()
        .filter_map(|variant| {
            let Some(Trace::Worst { keep, above_ns }) = variant.configuration.trace else { return None };
            let mut slow = Slow {
                configuration: variant.configuration,
                above_ns,
                above: 0,
                wakes: 0,
                median_ps: variant.histogram(Quantity::Wake).map_or(0.0, |wakes| wakes.quantile(0.5) as f64),
                incomplete: 0,
                hidden: Vec::new(),
                kept: Vec::new(),
            };
            for record in variant.usable() {
                slow.wakes = slow
                    .wakes
                    .saturating_add(record.series.get(&Quantity::Wake).map_or(0, |wakes| wakes.count));
                let Some(anatomy) = &record.anatomy else { continue };
                slow.above = slow.above.saturating_add(anatomy.counts.above.unwrap_or(0));
                slow.incomplete = slow.incomplete.saturating_add(anatomy.counts.incomplete);
                for one in &anatomy.hidden {
                    if !slow.hidden.contains(&one) {
                        slow.hidden.push(one);
                    }
                }
                slow.kept.extend(anatomy.kept.iter().map(explained));
            }
            slow.kept.sort_by_key(|one| std::cmp::Reverse(one.wake.whole_ps()));
            slow.kept.truncate(keep as usize);
            Some(slow)
        })
        .collect()
}

pub fn explained(wake: &Wake) -> Explained<'_> {
    Explained { wake, verdict: cause::verdict(wake), found: cause::causes(wake), longest: longest(wake) }
}
