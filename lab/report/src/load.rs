// SPDX-License-Identifier: MIT OR Apache-2.0
//! The load that trials ran under, and the proof that it was there.

use std::collections::BTreeMap;

use super::axis;
use super::figures::{Figures, Row};
use super::notifications::share;
use super::subsection::{Subsection, heads};
use super::table::{Table, number};
use super::unit::{count, time};
use crate::wording::shown;
use doorbell_results::record::Record;
use doorbell_results::record::load::LoadProof;

/// Heads of the columns, and what each means.
const COLUMNS: [(&str, &str); 7] = [
    (
        "started before",
        "how long all workers had been at work when the trial began, the shortest of the trials",
    ),
    ("outlasted by", "how long after its end the last look found all of them still at work, the shortest"),
    ("least busy CPU", "the CPU that was busy for the smallest share of a trial"),
    ("run queue", "tasks that ran or wanted to, mean of the looks before, each second, and after"),
    ("load average", "the same over the last minute, at the end of the last trial"),
    ("waited (PSI)", "share of the time in which some runnable task waited for a CPU, mean of the trials"),
    ("trials", "trials that ran under the load"),
];

/// The loads that trials ran under, with their proof, and the idle states of the CPUs; those of
/// which there is anything to tell.
pub fn subsections(figures: &Figures) -> Vec<Subsection> {
    loads(figures).into_iter().chain(idle_states(figures)).collect()
}

fn loads(figures: &Figures) -> Option<Subsection> {
    let lines: Vec<(&Row, [String; 7])> =
        figures.rows.iter().filter_map(|row| Some((row, line(row)?))).collect();
    let axes = axis::varying(lines.iter().map(|(row, _)| row.configuration()));
    let mut columns = heads(&axes, "mechanism");
    columns
        .extend(COLUMNS.iter().zip([7, 6, 5, 4, 3, 2, 1]).map(|((head, _), keep)| number(*head).keep(keep)));
    let mut table = Table::new(columns);
    for (row, configurations) in lines {
        let axes = axes.iter().map(|axis| shown(*axis, row));
        table.row(axes.chain(configurations).collect());
    }
    let meanings = COLUMNS.map(|(head, meaning)| format!("{head}: {meaning}")).join("; ");
    Subsection::of_table("Load during the trials", table, vec![format!("{meanings}.")])
}

fn line(row: &Row) -> Option<[String; 7]> {
    let proofs: Vec<&LoadProof> =
        row.variant.usable().filter_map(|record: &Record| record.load.as_ref()).collect();
    let last = proofs.last()?;
    let shortest = |of: fn(&LoadProof) -> u64| {
        time(proofs.iter().map(|proof| of(proof)).min().unwrap_or(0) as f64 * 1e3)
    };
    let unknown = || "-".to_owned();
    let mean = |values: Vec<f64>| {
        let sum: f64 = values.iter().sum();
        (!values.is_empty()).then(|| sum / values.len() as f64)
    };
    let least = proofs.iter().filter_map(|proof| proof.least_busy()).min_by(|a, b| a.1.total_cmp(&b.1));
    let queue = mean(proofs.iter().filter_map(|proof| proof.mean_run_queue()).collect());
    let pressure = mean(proofs.iter().filter_map(|proof| proof.pressure_share).collect());
    Some([
        shortest(|proof| proof.started_before_ns),
        shortest(|proof| proof.outlasted_ns),
        least.map_or_else(unknown, |(cpu, busy)| {
            format!("{cpu}: {}", share((busy.clamp(0.0, 1.0) * 1000.0).round() as u64, 1000))
        }),
        queue.map_or_else(unknown, |queue| format!("{queue:.1}")),
        last.load_average.map_or_else(unknown, |load| format!("{load:.2}")),
        pressure.map_or_else(unknown, |share| format!("{:.1} %", share * 100.0)),
        count(proofs.len() as u64),
    ])
}

/// Time in idle states, one line a variant; none where the kernel shows none.
fn idle_states(figures: &Figures) -> Option<Subsection> {
    let lines = idle_lines(figures);
    let (_, states) = lines.first()?;
    let axes = axis::varying(lines.iter().map(|(row, _)| row.configuration()));
    let mut columns = heads(&axes, "mechanism");
    columns.extend(states.keys().map(|name| number(name.clone())));
    columns.push(number("trials").keep(1));
    let mut table = Table::new(columns);
    for (row, shares) in &lines {
        let mut line: Vec<String> = axes.iter().map(|axis| shown(*axis, row)).collect();
        line.extend(states.keys().map(|name| {
            shares.get(name).map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
        }));
        line.push(count(row.variant.usable().count() as u64));
        table.row(line);
    }
    Subsection::of_table("Time of the measured CPUs in idle states, mean of the trials", table, Vec::new())
}

/// The mean share of each idle state for each row of `figures` whose trials saw any.
fn idle_lines<'row>(figures: &'row Figures) -> Vec<(&'row Row<'row>, BTreeMap<String, f64>)> {
    let mean = |row: &Row| {
        let trials: Vec<&BTreeMap<String, f64>> = row
            .variant
            .usable()
            .map(|record| &record.environment.idle_states)
            .filter(|states| !states.is_empty())
            .collect();
        let mut sums: BTreeMap<String, f64> = BTreeMap::new();
        for (name, share) in trials.iter().flat_map(|states| states.iter()) {
            *sums.entry(name.clone()).or_default() += share / trials.len() as f64;
        }
        sums
    };
    figures.rows.iter().map(|row| (row, mean(row))).filter(|(_, states)| !states.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::style::Style;
    use crate::subsection::text;
    use doorbell_results::configuration::Configuration;
    use doorbell_results::configuration::Load;

    #[test]
    fn idle_states_are_shown_as_shares_where_there_are_any() {
        let mut record = sample::record(&sample::configuration("futex"), 0, &[8_000_000]);
        record.environment.idle_states = BTreeMap::from([("C1".to_owned(), 0.25), ("C6".to_owned(), 0.5)]);
        let result = sample::result("ping", vec![record]);
        let shown = text(&subsections(&Figures::of(&result)), &Style::PLAIN);
        assert!(shown.contains("25.0 %") && shown.contains("50.0 %") && shown.contains("C6"), "{shown}");
    }

    #[test]
    fn the_proof_of_a_load_is_shown_and_an_idle_run_shows_none() {
        let idle =
            sample::result("ping", vec![sample::record(&sample::configuration("futex"), 0, &[8_000_000])]);
        assert!(subsections(&Figures::of(&idle)).is_empty());
        let load = Load { kind: "sqrt".to_owned(), workers: 4, pinned: false };
        let configuration = Configuration { load: Some(load), ..sample::configuration("futex") };
        let mut record = sample::record(&configuration, 0, &[8_000_000]);
        record.load = Some(LoadProof {
            started_before_ns: 12_000_000,
            outlasted_ns: 3_000_000,
            busy: BTreeMap::from([(0, 0.999), (1, 0.871)]),
            run_queue: vec![5, 6],
            load_average: Some(3.5),
            pressure_share: Some(0.5),
            ..LoadProof::default()
        });
        let result = sample::result("ping", vec![record]);
        let shown = text(&subsections(&Figures::of(&result)), &Style { width: 200, ..Style::PLAIN });
        for part in ["12 ms", "3 ms", "1: 87.1 %", "5.5", "3.50", "50.0 %"] {
            assert!(shown.contains(part), "{part}:\n{shown}");
        }
    }
}
