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
use doorbell_verdict::versus::{Versus, versus, versus_of};

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

/// Rows that were judged together; none of the harness itself.
#[derive(Debug)]
pub struct Judged<'a> {
    rows: Vec<Having<'a>>,
    versus: Versus,
    quantity: Quantity,
}

impl<'a> Judged<'a> {
    pub fn of(rows: &[Having<'a>], quantity: Quantity) -> Self {
        let rows: Vec<Having> = rows.iter().filter(|(row, _)| !row.is_harness()).copied().collect();
        let variants: Vec<_> = rows.iter().map(|(row, _)| &row.variant).collect();
        let loads: Vec<(usize, usize)> =
            (0..rows.len()).filter_map(|place| Some((unloaded(&rows, place)?, place))).collect();
        let versus = match rows.len() {
            2..=MOST if loads.is_empty() => versus(&variants, quantity),
            2..=MOST => versus_of(&variants, quantity, &loads),
            _ => Versus::default(),
        };
        Self { rows, versus, quantity }
    }

    /// What a row takes, picoseconds: what its ratios are of where it was judged, so that no sentence contradicts the table, else its median.
    pub fn p50_ps(&self, having: &Having) -> f64 {
        let place = self.rows.iter().position(|(row, _)| std::ptr::eq(*row, having.0));
        let level = place.and_then(|place| self.versus.level_ns(place)).map(|ns| ns * 1e3);
        level.unwrap_or_else(|| having.1.quantile(0.5) as f64)
    }

    /// What the rows say of each other: the shortest beside the longest, or what a load does where rows differ in it.
    pub fn sentences(&self) -> Vec<String> {
        let axes = axis::varying(self.rows.iter().map(|(row, _)| row.configuration()));
        let by_load = self.under_load(&axes);
        if !by_load.is_empty() {
            return by_load;
        }
        let p50 = |place: &usize| self.p50_ps(&self.rows[*place]);
        let by_p50 = |a: &usize, b: &usize| p50(a).total_cmp(&p50(b));
        let Some(first) = (0..self.rows.len()).min_by(by_p50) else { return Vec::new() };
        let Some(last) = (0..self.rows.len()).rev().max_by(by_p50) else { return Vec::new() };
        let name = |place: usize| axis::label(self.rows[place].0.configuration(), &axes);
        if first == last {
            return vec![alone(&self.rows[first], self.quantity)];
        }
        let [short, long] = alike([p50(&first), p50(&last)]);
        vec![format!(
            "{} takes {short} and {} {long}: {}.",
            name(first),
            name(last),
            interval(self.versus.ratio(first, last))
        )]
    }

    /// What a load makes of the rows that were also run without one.
    fn under_load(&self, axes: &[Axis]) -> Vec<String> {
        let apart: Vec<Axis> = axes.iter().copied().filter(|axis| *axis != Axis::Load).collect();
        let loaded = self.rows.iter().enumerate();
        loaded
            .filter_map(|(place, having)| {
                let configuration = having.0.configuration();
                let without = unloaded(&self.rows, place)?;
                let [busy, free] = alike([having, &self.rows[without]].map(|having| self.p50_ps(having)));
                Some(format!(
                    "{} takes {busy} under load ({}) and {free} on an idle machine: {}.",
                    axis::label(configuration, &apart),
                    Axis::Load.value(configuration),
                    interval(self.versus.ratio(without, place))
                ))
            })
            .take(LOADS)
            .collect()
    }
}

/// The row that differs from the one at `place` in nothing but that it ran without its load.
fn unloaded(rows: &[Having], place: usize) -> Option<usize> {
    let configuration = rows[place].0.configuration();
    configuration.load.as_ref()?;
    let bare = Configuration { load: None, ..configuration.clone() };
    rows.iter().position(|(row, _)| *row.configuration() == bare)
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
