// SPDX-License-Identifier: MIT OR Apache-2.0
//! What else went on while the trials of each variant ran, and what
//! the kernel counted for their sides.

use std::collections::BTreeMap;

use super::axis;
use super::figures::{Figures, Row};
use super::subsection::{Subsection, heads};
use super::table::{Table, number, word};
use super::unit::{count, time};
use crate::wording::shown;
use doorbell_results::record::{Environment, Record, SideCounters};

/// One line a variant; none where no variant has figures.
pub fn subsection(figures: &Figures) -> Option<Subsection> {
    let axes = axis::varying(figures.rows.iter().map(Row::configuration));
    let mut columns = heads(&axes, "mechanism");
    columns.extend(["trials", "tries", "others", "steal", "waited (PSI)", "throttled"].map(number));
    columns.extend(["sleeps", "preempted", "migrated", "minor faults", "major faults"].map(number));
    columns.push(word("interrupts"));
    let mut table = Table::new(columns);
    for row in &figures.rows {
        let mut line: Vec<String> = axes.iter().map(|axis| shown(*axis, row)).collect();
        line.extend(configurations(row));
        table.row(line);
    }
    let note = "All trials of a variant together. Tries: trials with those that were repeated \
        because of interference. Others: CPU time of other programs on the measured CPUs, steal: \
        what the hypervisor took of them, each as a share of one CPU; waited: time in which some \
        runnable task of the machine had no CPU; mean and largest of the trials. Throttled: by the \
        control group's quota. Sleeps and preempted: voluntary and involuntary context switches of \
        the sides; migrated: their moves between CPUs. Interrupts: on the measured CPUs, by the \
        kernel's names.";
    Subsection::of_table("Around the trials", table, vec![note.to_owned()])
}

fn configurations(row: &Row) -> [String; 12] {
    let records: Vec<&Record> = row.variant.usable().collect();
    let sum = |of: &dyn Fn(&Record) -> u64| {
        records.iter().fold(0_u64, |sum, record| sum.saturating_add(of(record)))
    };
    let uncounted = records.iter().flat_map(|record| &record.sides).any(|side| side.uncounted);
    let of_sides = |of: fn(&SideCounters) -> u64| {
        if uncounted {
            return unknown();
        }
        count(sum(&|record| record.sides.iter().fold(0_u64, |sum, side| sum.saturating_add(of(side)))))
    };
    let share = |of: fn(&Environment) -> Option<f64>| {
        let shares: Vec<f64> = records.iter().filter_map(|record| of(&record.environment)).collect();
        let largest = shares.iter().copied().reduce(f64::max);
        largest.map_or_else(unknown, |largest| {
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            format!("{:.1}..{:.1} %", mean * 100.0, largest * 100.0)
        })
    };
    let throttled: Vec<u64> = records.iter().filter_map(|record| record.environment.throttled_ns).collect();
    let migrations = records.iter().flat_map(|record| &record.sides).filter_map(|side| side.migrations);
    let mut interrupts = BTreeMap::<&str, u64>::new();
    for (kind, came) in records.iter().flat_map(|record| &record.environment.interrupts) {
        let known = interrupts.entry(kind).or_default();
        *known = known.saturating_add(*came);
    }
    let came: Vec<String> = interrupts
        .into_iter()
        .filter(|(_, came)| *came > 0)
        .map(|(kind, came)| format!("{kind} {}", count(came)))
        .collect();
    [
        count(records.len() as u64),
        count(sum(&|record| record.attempts.into())),
        share(|around| around.foreign_share),
        share(|around| around.steal_share),
        share(|around| around.pressure_share),
        throttled
            .iter()
            .copied()
            .reduce(u64::saturating_add)
            .map_or_else(unknown, |ns| time(ns as f64 * 1e3)),
        of_sides(|side| side.voluntary_switches),
        of_sides(|side| side.involuntary_switches),
        migrations.reduce(u64::saturating_add).map_or_else(unknown, count),
        of_sides(|side| side.minor_faults),
        of_sides(|side| side.major_faults),
        if came.is_empty() { unknown() } else { came.join(", ") },
    ]
}

fn unknown() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::style::Style;
    use crate::subsection::text;

    #[test]
    fn what_went_on_around_the_trials_is_summed_and_what_is_unknown_is_no_zero() {
        let mut records: Vec<Record> = (0..2)
            .map(|block| sample::record(&sample::configuration("futex"), block, &[8_000_000]))
            .collect();
        for (record, share) in records.iter_mut().zip([0.1, 0.3]) {
            record.attempts = 2;
            record.environment.foreign_share = Some(share);
            record.environment.interrupts = BTreeMap::from([("RES".to_owned(), 600), ("CAL".to_owned(), 0)]);
            record.sides[1].involuntary_switches = 7;
        }
        let result = sample::result("ping", records);
        let told = subsection(&Figures::of(&result)).expect("a subsection");
        let shown = text(&[told], &Style::PLAIN);
        for part in ["20.0..30.0 %", "RES 1,200", "  14  "] {
            assert!(shown.contains(part), "{part}:\n{shown}");
        }
        assert!(!shown.contains("CAL") && !shown.contains("throttled "), "{shown}");
    }
}
