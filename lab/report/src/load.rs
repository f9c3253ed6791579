// SPDX-License-Identifier: MIT OR Apache-2.0
//! The load that trials ran under, and the proof that it was there.

use std::collections::BTreeMap;

use super::columns::{Columns, dash};
use super::figures::{Figures, Row};
use super::notifications::share;
use super::subsection::Subsection;
use super::table::number;
use super::unit::{count, time_ns};
use doorbell_results::record::load::LoadProof;

/// What the columns mean.
const MEANINGS: &str = "Started before: how long all workers had been at work when the trial began, the \
    shortest of the trials. Outlasted by: how long after its end the last look found all of them still at \
    work, the shortest. Least busy CPU: the CPU that was busy for the smallest share of a trial. Run queue: \
    tasks that ran or wanted to, mean of the looks before, each second, and after. Load average: the same \
    over the last minute, at the end of the last trial. Waited (PSI): share of the time in which some \
    runnable task waited for a CPU, mean of the trials. Trials: those that ran under the load.";

/// The loads that trials ran under, with their proof, and the idle states of the CPUs; those of
/// which there is anything to tell.
pub fn subsections(figures: &Figures) -> Vec<Subsection> {
    loads(figures).into_iter().chain(idle_states(figures)).collect()
}

/// A row with what its trials saw of their load.
type Proven<'a> = (&'a Row<'a>, Vec<&'a LoadProof>);

fn loads(figures: &Figures) -> Option<Subsection> {
    let seen = |row| (row, Row::usable(row).filter_map(|record| record.load.as_ref()).collect());
    let mut rows: Vec<Proven> = figures.rows.iter().map(seen).collect();
    rows.retain(|(_, proofs)| !proofs.is_empty());
    let shortest = |proofs: &[&LoadProof], of: fn(&LoadProof) -> u64| {
        time_ns(proofs.iter().map(|proof| of(proof)).min().unwrap_or(0) as f64)
    };
    let mean = |proofs: &[&LoadProof], of: fn(&LoadProof) -> Option<f64>| {
        let values: Vec<f64> = proofs.iter().filter_map(|proof| of(proof)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let table = Columns::of(&rows, "mechanism")
        .with(number("started before").keep(7), |(_, proofs)| {
            shortest(proofs, |proof| proof.started_before_ns)
        })
        .with(number("outlasted by").keep(6), |(_, proofs)| shortest(proofs, |proof| proof.outlasted_ns))
        .with(number("least busy CPU").keep(5), |(_, proofs)| {
            let least =
                proofs.iter().filter_map(|proof| proof.least_busy()).min_by(|a, b| a.1.total_cmp(&b.1));
            least.map_or_else(dash, |(cpu, busy)| {
                format!("{cpu}: {}", share((busy.clamp(0.0, 1.0) * 1000.0).round() as u64, 1000))
            })
        })
        .with(number("run queue").keep(4), |(_, proofs)| {
            mean(proofs, LoadProof::mean_run_queue).map_or_else(dash, |queue| format!("{queue:.1}"))
        })
        .with(number("load average").keep(3), |(_, proofs)| {
            let last = proofs.last().and_then(|proof| proof.load_average);
            last.map_or_else(dash, |load| format!("{load:.2}"))
        })
        .with(number("waited (PSI)").keep(2), |(_, proofs)| {
            mean(proofs, |proof| proof.pressure_share).map_or_else(dash, percent)
        })
        .with(number("trials").keep(1), |(_, proofs)| count(proofs.len() as u64))
        .table(&rows);
    Subsection::of_table("Load during the trials", table, vec![MEANINGS.to_owned()])
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Time in idle states, one line a variant; none where the kernel shows none.
fn idle_states(figures: &Figures) -> Option<Subsection> {
    let rows = idle_rows(figures);
    let (_, states) = rows.first()?;
    let states = states.keys().map(|name| (number(name.clone()), name.clone()));
    let table = Columns::of(&rows, "mechanism")
        .each(states, |(_, shares), name| shares.get(name).copied().map_or_else(dash, percent))
        .with(number("trials").keep(1), |(row, _)| count(row.usable().count() as u64))
        .table(&rows);
    Subsection::of_table("Time of the measured CPUs in idle states, mean of the trials", table, Vec::new())
}

/// The mean share of each idle state for each row of `figures` whose trials saw any.
fn idle_rows<'row>(figures: &'row Figures) -> Vec<(&'row Row<'row>, BTreeMap<String, f64>)> {
    let mean = |row: &Row| {
        let trials: Vec<&BTreeMap<String, f64>> = row
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
