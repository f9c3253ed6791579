// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell pairs` on the terminal: a matrix of CPUs for each mechanism.

use super::axis;
use super::bars;
use super::columns::Columns;
use super::figures::{Figures, Row};
use super::pairs::{Matrix, Pair};
use super::quantities;
use super::section::Section;
use super::subsection::Subsection;
use super::table::{number, word};
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
    /// One matrix per mechanism, with the best and the worst pair named.
    fn details(&self, _: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        let (matrices, rest) = Matrix::of(figures);
        let mut told: Vec<Subsection> = matrices.iter().map(|matrix| told(matrix, &rest)).collect();
        if !rest.is_empty() {
            let rest = Figures { rows: rest.into_iter().cloned().collect(), absent: Vec::new() };
            told.extend(quantities::tables(&rest));
        }
        told
    }
}

/// The median of a pair of CPUs, and the pair.
type Timed = (f64, [u32; 2]);

fn median(row: &Row) -> Option<f64> {
    row.p50_ps(row.variant.headline())
}

/// A sentence for each mechanism, and a row for each of its placements: that many there are of a
/// machine with any number of CPUs.
fn answer(figures: &Figures) -> Vec<Subsection> {
    let (matrices, rest) = Matrix::measured(figures);
    let lead = matrices.iter().map(|matrix| sentence(matrix, &rest)).collect();
    let mut groups: BTreeMap<(&str, String), Vec<Timed>> = BTreeMap::new();
    for row in figures.rows.iter().filter(|row| !row.is_harness()) {
        let configuration = row.configuration();
        let (Some(ps), Some(cpus)) = (median(row), configuration.placement.cpus) else { continue };
        let group = (configuration.subject.as_str(), axis::relation(&configuration.placement.relation));
        groups.entry(group).or_default().push((ps, cpus));
    }
    let scale = Scale::for_ps(groups.values().flatten().map(|(ps, _)| *ps));
    let mut lines: Vec<_> = groups.into_iter().collect();
    lines.iter_mut().for_each(|(_, pairs)| pairs.sort_by(|a, b| a.0.total_cmp(&b.0)));
    let middle = |pairs: &[Timed]| pairs[pairs.len() / 2].0;
    lines.sort_by(|((a, _), of_a), ((b, _), of_b)| a.cmp(b).then(middle(of_a).total_cmp(&middle(of_b))));
    let cpus = |[a, b]: [u32; 2]| format!("{a},{b}");
    let table = Columns::none()
        .with(word("mechanism"), |((subject, _), _): &((&str, String), Vec<Timed>)| (*subject).to_owned())
        .with(word("placement"), |((_, place), _)| place.clone())
        .with(number("median pair"), |(_, pairs)| scale.show(middle(pairs)))
        .with(number("best"), |(_, pairs)| scale.show(pairs[0].0))
        .with(word("CPUs"), |(_, pairs)| cpus(pairs[0].1))
        .with(number("worst"), |(_, pairs)| scale.show(pairs[pairs.len() - 1].0))
        .with(word("of CPUs"), |(_, pairs)| cpus(pairs[pairs.len() - 1].1))
        .with(number("pairs").keep(1), |(_, pairs)| count(pairs.len() as u64))
        .table(&lines);
    let title = format!("Where to pin: medians by pair of CPUs, {}", scale.unit.sign());
    vec![Subsection::answer(title, lead, table)]
}

/// The best and the worst pair, and what the scheduler makes of it, which is among the `rest`.
fn sentence(matrix: &Matrix, rest: &[&Row]) -> String {
    let free = rest.iter().find(|row| {
        row.configuration().subject == matrix.subject && row.configuration().placement.cpus.is_none()
    });
    let free = free.and_then(|row| median(row));
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

fn told(matrix: &Matrix, rest: &[&Row]) -> Subsection {
    let scale = Scale::for_ps(matrix.pairs.iter().map(|pair| pair.p50_ps));
    let title = format!("{}: median by pair, {}", matrix.subject, scale.unit.sign());
    let lead = format!(
        "Row: the CPU that notifies first; column: the other. {}.",
        counted(matrix.count(), "sample")
    );
    let table = bars::matrix(matrix, number("CPU"), scale, true);
    Subsection { notes: vec![sentence(matrix, rest)], ..Subsection::answer(title, vec![lead], table) }
}
