// SPDX-License-Identifier: MIT OR Apache-2.0
//! A variant: all trials of one configuration, block by block, as one thing to look at.

use std::collections::HashMap;

use super::{Histogram, Record, ResultFile, Subject, Tally};
use crate::configuration::Configuration;
use crate::record::Quantity;
use crate::record::within_grid::within_grid;

/// All trials of one configuration.
#[derive(Debug, Clone)]
pub struct Variant<'result> {
    pub configuration: &'result Configuration,
    /// Its trials in the order of execution, however they ended.
    pub records: Vec<&'result Record>,
    /// The grid of the run's clock, picoseconds; 0 where it is not known.
    pub grid_ps: f64,
}

impl ResultFile {
    /// The variants, in the order of the plan; configurations that never came to run have none.
    pub fn variants(&self) -> Vec<Variant<'_>> {
        let mut records: HashMap<&Configuration, Vec<&Record>> = HashMap::new();
        for record in &self.records {
            records.entry(&record.configuration).or_default().push(record);
        }
        // Taken out, so that a configuration which a plan from elsewhere names twice is one variant.
        let grid_ps = self.machine.clock_quality.as_ref().map_or(0.0, |quality| quality.grid_ps as f64);
        let variant =
            |configuration| Some(Variant { configuration, records: records.remove(configuration)?, grid_ps });
        self.plan.configurations.iter().filter_map(variant).collect()
    }
}

impl<'result> Variant<'result> {
    pub fn subject(&self) -> &'result Subject {
        self.records.first().map_or(&Subject::Unknown, |record| &record.subject)
    }

    /// Whether it is the harness alone, with nothing to measure in it.
    pub fn is_harness(&self) -> bool {
        self.subject().is_harness()
    }

    /// Trials whose figures may be used.
    pub fn usable(&self) -> impl Iterator<Item = &'result Record> {
        self.records.iter().copied().filter(|record| record.outcome.is_usable())
    }

    /// The quantity a reader compares first.
    pub fn headline(&self) -> Quantity {
        self.configuration.pattern.headline()
    }

    /// All usable samples of `quantity` together; none if there are
    /// none or a histogram cannot be decoded.
    pub fn histogram(&self, quantity: Quantity) -> Option<Histogram> {
        let mut whole = Histogram::new();
        for record in self.usable() {
            if let Some(series) = record.series.get(&quantity) {
                whole.add_counters(&series.counters().ok()?);
            }
        }
        (whole.count() > 0).then_some(whole)
    }

    /// The times at quantiles of all usable samples of `quantity`
    /// together, within the steps of the clock, picoseconds.
    pub fn quantiles_ps<const N: usize>(&self, quantity: Quantity, of: [f64; N]) -> Option<[u64; N]> {
        let whole = self.histogram(quantity)?;
        let grid_ps = if quantity.is_shared_out() { 0.0 } else { self.grid_ps };
        let buckets: Vec<(u64, u64)> = whole.buckets().collect();
        Some(of.map(|q| {
            within_grid(&buckets, q, grid_ps).map_or_else(|| whole.quantile(q), |ps| ps.round() as u64)
        }))
    }

    /// The median of `quantity` in each usable trial, nanoseconds.
    pub fn medians_ns(&self, quantity: Quantity) -> Vec<f64> {
        self.usable().filter_map(|record| record.series.get(&quantity)).map(|series| series.p50_ns).collect()
    }

    /// Notifications of all usable trials.
    pub fn tally(&self) -> Tally {
        self.usable().fold(Tally::default(), |sum, record| sum.plus(&record.tally))
    }

    /// CPU time a wake-up over all usable trials, nanoseconds: see [`Record::cpu_per_wake`].
    pub fn cpu_ns_per_wake(&self) -> Option<f64> {
        let trials: Vec<(f64, u64)> = self.usable().filter_map(Record::cpu_per_wake).collect();
        let wakes: f64 = trials.iter().map(|(_, wakes)| *wakes as f64).sum();
        (wakes > 0.0)
            .then(|| trials.iter().map(|(cpu_ns, wakes)| cpu_ns * *wakes as f64).sum::<f64>() / wakes)
    }
}

impl Tally {
    /// Both together; a file from elsewhere may hold any number, so sums stop at the greatest.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            sent: self.sent.saturating_add(other.sent),
            seen: self.seen.saturating_add(other.seen),
            lost: self.lost.saturating_add(other.lost),
            late: self.late.saturating_add(other.late),
            duplicate: self.duplicate.saturating_add(other.duplicate),
            spurious: self.spurious.saturating_add(other.spurious),
            merged: self.merged.saturating_add(other.merged),
            timeouts: self.timeouts.saturating_add(other.timeouts),
            warmup: self.warmup.saturating_add(other.warmup),
            proven_asleep: self.proven_asleep.saturating_add(other.proven_asleep),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::record::sample;

    #[test]
    fn a_run_of_many_configurations_falls_into_variants_in_the_order_of_the_plan() {
        let configurations: Vec<_> =
            (0..300).map(|number| sample::configuration(&format!("mechanism-{number}"))).collect();
        let mut result = sample::result(&configurations[..3], 2, |_, _| 16_000.0);
        result.records.reverse();
        result.plan.configurations = configurations;
        // Named twice, as only a plan from elsewhere has it: no trial may count twice.
        result.plan.configurations.push(sample::configuration("mechanism-1"));
        let variants = result.variants();
        let subjects: Vec<&str> =
            variants.iter().map(|variant| variant.configuration.subject.as_str()).collect();
        assert_eq!(subjects, ["mechanism-0", "mechanism-1", "mechanism-2"]);
        assert!(variants.iter().all(|variant| variant.records.len() == 2));
    }
}
