// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell pairs` on the terminal: a matrix of CPUs for each mechanism.

use super::axis;
use super::bars;
use super::figures::{Figures, Row};
use super::pairs::{Matrix, Pair};
use super::quantities;
use super::section::Section;
use super::style::{Role, Style};
use super::subsection::Subsection;
use super::table::{Table, number, word};
use super::unit::{Scale, alike, count, plain};
use super::wording::counted;
use doorbell_results::record::ResultFile;
use std::collections::BTreeMap;

#[derive(Debug)]
pub struct Matrices;

impl Section for Matrices {
    fn name(&self) -> &'static str {
        "pairs"
    }
    fn answer(&self, _: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        answer(figures)
    }
    fn text(&self, _: &ResultFile, figures: &Figures, style: &Style) -> String {
        text(figures, style)
    }
}

/// The median of a pair of CPUs, and the pair.
type Timed = (f64, [u32; 2]);

/// A sentence for each mechanism, and a row for each of its placements: that many there are of a
/// machine with any number of CPUs.
fn answer(figures: &Figures) -> Vec<Subsection> {
    let (matrices, rest) = Matrix::measured(figures);
    let of = |row: &Row| row.series.get(&row.variant.headline()).map(|series| series.quantile(0.5) as f64);
    let mut lead = Vec::new();
    for matrix in &matrices {
        let free = rest.iter().find(|row| {
            row.configuration().subject == matrix.subject && row.configuration().placement.cpus.is_none()
        });
        lead.push(sentence(matrix, free.and_then(|row| of(row))));
    }
    let mut groups: BTreeMap<(&str, String), Vec<Timed>> = BTreeMap::new();
    for row in figures.rows.iter().filter(|row| !row.is_harness()) {
        let configuration = row.configuration();
        let (Some(ps), Some(cpus)) = (of(row), configuration.placement.cpus) else { continue };
        let group = (configuration.subject.as_str(), axis::relation(&configuration.placement.relation));
        groups.entry(group).or_default().push((ps, cpus));
    }
    let scale = Scale::for_ps(groups.values().flatten().map(|(ps, _)| *ps));
    let mut table = Table::new(vec![
        word("mechanism"),
        word("placement"),
        number("median pair"),
        number("best"),
        word("CPUs"),
        number("worst"),
        word("of CPUs"),
        number("pairs").keep(1),
    ]);
    let mut lines: Vec<(f64, Vec<String>)> = Vec::new();
    for ((subject, place), mut pairs) in groups {
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (best, worst, middle) = (pairs[0], pairs[pairs.len() - 1], pairs[pairs.len() / 2]);
        let cpus = |[a, b]: [u32; 2]| format!("{a},{b}");
        let line = vec![
            subject.to_owned(),
            place,
            scale.show(middle.0),
            scale.show(best.0),
            cpus(best.1),
            scale.show(worst.0),
            cpus(worst.1),
            count(pairs.len() as u64),
        ];
        lines.push((middle.0, line));
    }
    lines.sort_by(|a, b| (&a.1[0], a.0).partial_cmp(&(&b.1[0], b.0)).unwrap_or(std::cmp::Ordering::Equal));
    lines.into_iter().for_each(|(_, line)| table.row(line));
    let title = format!("Where to pin: medians by pair of CPUs, {}", scale.unit.sign());
    vec![Subsection { title, lead, table: Some(table), ..Subsection::default() }]
}

/// The best and the worst pair, and what the scheduler makes of it, `free`.
fn sentence(matrix: &Matrix, free: Option<f64>) -> String {
    let (Some(best), Some(worst)) = (matrix.best(), matrix.worst()) else { return String::new() };
    let [shortest, longest, left] = alike([best.p50_ps, worst.p50_ps, free.unwrap_or(f64::NAN)]);
    let times = |ps: f64| format!("{} times as long", plain(ps / best.p50_ps.max(1.0)));
    let worst = match (best.from, best.to) == (worst.from, worst.to) {
        true => String::new(),
        false => format!("; worst {} with {longest}, {}", on(worst), times(worst.p50_ps)),
    };
    let free = free.map_or_else(String::new, |ps| format!("; left to the scheduler {left}, {}", times(ps)));
    format!("{}: best {} with {shortest}{worst}{free}.", matrix.subject, on(best))
}

fn on(pair: &Pair) -> String {
    if pair.from == pair.to {
        format!("on CPU {} alone", pair.from)
    } else {
        format!("on CPUs {} and {}", pair.from, pair.to)
    }
}

/// One matrix per mechanism, with the best and the worst pair named.
fn text(figures: &Figures, style: &Style) -> String {
    let (matrices, rest) = Matrix::of(figures);
    let mut out = String::new();
    for matrix in &matrices {
        let scale = Scale::for_ps(matrix.pairs.iter().map(|pair| pair.p50_ps));
        let title = format!("{}: median by pair, {}", matrix.subject, scale.unit.sign());
        out.push_str(&format!("\n{}\n", style.paint(Role::Heading, &style.text(&title))));
        let note = format!(
            "Row: the CPU that notifies first; column: the other. {}.",
            counted(matrix.count(), "sample")
        );
        out.push_str(&style.wrap(&note, 0));
        out.push_str(&bars::matrix(matrix, scale, style));
        let unpinned = rest.iter().find(|row| {
            row.configuration().subject == matrix.subject && row.configuration().placement.cpus.is_none()
        });
        let free = unpinned.and_then(|row| row.series.get(&row.variant.headline()));
        let line = sentence(matrix, free.map(|series| series.quantile(0.5) as f64));
        out.push_str(&style.wrap(&line, 0));
    }
    if !rest.is_empty() {
        let rest = Figures { rows: rest.into_iter().cloned().collect(), absent: Vec::new() };
        out.push_str(&quantities::tables(&rest, style));
    }
    out
}
