// SPDX-License-Identifier: MIT OR Apache-2.0
//! What else went on while the trials of each variant ran, and what
//! the kernel counted for their sides.

use std::collections::BTreeMap;

use super::columns::{Columns, dash};
use super::figures::{Figures, Row};
use super::subsection::Subsection;
use super::table::{number, word};
use super::unit::{count, time_ns};
use doorbell_results::record::{Environment, SideCounters};

/// One line a variant; none where no variant has figures.
pub fn subsection(figures: &Figures) -> Option<Subsection> {
    let rows: Vec<&Row> = figures.rows.iter().collect();
    let sides = |row: &Row, of: fn(&SideCounters) -> u64| {
        let uncounted = row.usable().flat_map(|record| &record.sides).any(|side| side.uncounted);
        if uncounted { dash() } else { count(row.sum_of_sides(of)) }
    };
    let table = Columns::of(&rows, "mechanism")
        .with(number("trials"), |row| count(row.usable().count() as u64))
        .with(number("tries"), |row| count(row.usable().map(|record| u64::from(record.attempts)).sum()))
        .with(number("others"), |row| share(row, |around| around.foreign_share))
        .with(number("steal"), |row| share(row, |around| around.steal_share))
        .with(number("waited (PSI)"), |row| share(row, |around| around.pressure_share))
        .with(number("throttled"), |row| {
            let throttled = row.usable().filter_map(|record| record.environment.throttled_ns);
            throttled.reduce(u64::saturating_add).map_or_else(dash, |ns| time_ns(ns as f64))
        })
        .with(number("sleeps"), |row| sides(row, |side| side.voluntary_switches))
        .with(number("preempted"), |row| sides(row, |side| side.involuntary_switches))
        .with(number("migrated"), |row| {
            let moves = row.usable().flat_map(|record| &record.sides).filter_map(|side| side.migrations);
            moves.reduce(u64::saturating_add).map_or_else(dash, count)
        })
        .with(number("minor faults"), |row| sides(row, |side| side.minor_faults))
        .with(number("major faults"), |row| sides(row, |side| side.major_faults))
        .with(word("interrupts"), |row| interrupts(row))
        .table(&rows);
    let note = "All trials of a variant together. Tries: trials with those that were repeated \
        because of interference. Others: CPU time of other programs on the measured CPUs, steal: \
        what the hypervisor took of them, each as a share of one CPU; waited: time in which some \
        runnable task of the machine had no CPU; mean and largest of the trials. Throttled: by the \
        control group's quota. Sleeps and preempted: voluntary and involuntary context switches of \
        the sides; migrated: their moves between CPUs. Interrupts: on the measured CPUs, by the \
        kernel's names.";
    Subsection::of_table("Around the trials", table, vec![note.to_owned()])
}

/// Mean and largest of the trials.
fn share(row: &Row, of: fn(&Environment) -> Option<f64>) -> String {
    let shares: Vec<f64> = row.usable().filter_map(|record| of(&record.environment)).collect();
    let largest = shares.iter().copied().reduce(f64::max);
    largest.map_or_else(dash, |largest| {
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        format!("{:.1}..{:.1} %", mean * 100.0, largest * 100.0)
    })
}

fn interrupts(row: &Row) -> String {
    let mut interrupts = BTreeMap::<&str, u64>::new();
    for (kind, came) in row.usable().flat_map(|record| &record.environment.interrupts) {
        let known = interrupts.entry(kind).or_default();
        *known = known.saturating_add(*came);
    }
    interrupts.retain(|_, came| *came > 0);
    let came: Vec<String> =
        interrupts.into_iter().map(|(kind, came)| format!("{kind} {}", count(came))).collect();
    if came.is_empty() { dash() } else { came.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::style::Style;
    use crate::subsection::text;
    use doorbell_results::record::Record;

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
