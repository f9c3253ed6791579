// SPDX-License-Identifier: MIT OR Apache-2.0
//! How rows of a table stand to each other, in sentences with intervals: what a first screen says of several.

use super::answer::could_be;
use super::axis::{self, Axis};
use super::figures::{Distribution, Row};
use super::unit::{alike, time};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::series::Quantity;
use doorbell_verdict::compare::RELEVANT;
use doorbell_verdict::judge::{Ratio, Verdict};
use doorbell_verdict::versus::versus;

/// A row with the figures of the quantity that is spoken of.
pub type Having<'a> = (&'a Row<'a>, &'a Distribution);

/// Rows among which every pair is judged; of more only the ends are named.
const MOST: usize = 40;

/// A ratio with its interval, or what keeps it open.
pub fn interval(ratio: Option<Ratio>) -> String {
    let Some(ratio) = ratio else { return "too few blocks to say by how much".to_owned() };
    let three = |value: f64| match value {
        value if value.is_infinite() => "?".to_owned(),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    };
    match ratio.verdict(RELEVANT) {
        Verdict::Slower | Verdict::Faster => {
            format!("{} times as long ({} to {})", three(ratio.estimate), three(ratio.low), three(ratio.high))
        }
        Verdict::Same { within } => format!("the same within {:.1} %", within * 100.0),
        Verdict::Inconclusive => format!("inconclusive, {}", could_be(ratio)),
    }
}

/// What the rows say of each other: the shortest beside the longest, or what a load does where rows differ in it.
pub fn sentences(rows: &[Having], quantity: Quantity) -> Vec<String> {
    let real: Vec<Having> = rows.iter().filter(|(row, _)| !row.is_harness()).copied().collect();
    let axes = axis::varying(real.iter().map(|(row, _)| row.configuration()));
    let variants: Vec<_> = real.iter().map(|(row, _)| &row.variant).collect();
    let ratios = if real.len() <= MOST { versus(&variants, quantity) } else { Default::default() };
    let loaded = axes.contains(&Axis::Load);
    let by_load: Vec<String> = if loaded { under_load(&real, &axes, &ratios) } else { Vec::new() };
    if !by_load.is_empty() {
        return by_load;
    }
    let p50 = |place: &usize| real[*place].1.quantile(0.5);
    let Some(first) = (0..real.len()).min_by_key(p50) else { return Vec::new() };
    let Some(last) = (0..real.len()).rev().max_by_key(p50) else { return Vec::new() };
    let name = |place: usize| axis::label(real[place].0.configuration(), &axes);
    if first == last {
        return vec![alone(&real[first], quantity)];
    }
    let [short, long] = alike([first, last].map(|place| real[place].1.quantile(0.5) as f64));
    vec![format!(
        "{} takes {short} and {} {long}: {}.",
        name(first),
        name(last),
        interval(ratios.get(&(first, last)).copied())
    )]
}

/// One row in a sentence.
fn alone((row, series): &Having, quantity: Quantity) -> String {
    let what = super::figures::name(quantity).to_lowercase();
    let [p50, p99] = alike([0.5, 0.99].map(|q| series.percentile(q).map_or(f64::NAN, |ps| ps as f64)));
    let p99 = if series.percentile(0.99).is_some() { format!(", p99 {p99}") } else { String::new() };
    let cpu = row.cpu_ps().map_or_else(String::new, |ps| format!(", {} of CPU", time(ps)));
    let place = axis::relation(&row.configuration().placement.relation);
    format!("{} ({place}): {what} {p50}{p99}{cpu}.", row.configuration().subject)
}

/// Sentences on loads at the most.
const LOADS: usize = 3;

/// What a load makes of the rows that were also run without one.
fn under_load(
    rows: &[Having],
    axes: &[Axis],
    ratios: &std::collections::BTreeMap<(usize, usize), Ratio>,
) -> Vec<String> {
    let apart: Vec<Axis> = axes.iter().copied().filter(|axis| *axis != Axis::Load).collect();
    let idle = |configuration: &Configuration| Configuration { load: None, ..configuration.clone() };
    let loaded = rows.iter().enumerate().filter(|(_, (row, _))| row.configuration().load.is_some());
    loaded
        .filter_map(|(place, (row, series))| {
            let bare = idle(row.configuration());
            let without = rows.iter().position(|(row, _)| *row.configuration() == bare)?;
            let [busy, free] = alike([series, rows[without].1].map(|series| series.quantile(0.5) as f64));
            Some(format!(
                "{} takes {busy} under load ({}) and {free} on an idle machine: {}.",
                axis::label(row.configuration(), &apart),
                Axis::Load.value(row.configuration()),
                interval(ratios.get(&(without, place)).copied())
            ))
        })
        .take(LOADS)
        .collect()
}
