// SPDX-License-Identifier: MIT OR Apache-2.0
//! One table per quantity, with its definition: how results are told that ask for nothing else.

use super::axis;
use super::bars;
use super::columns::Columns;
use super::figures::{self, Figures, Having, Row, scale};
use super::row_comparison::{CONDITIONS, Judged};
use super::section::Section;
use super::subsection::{Subsection, all};
use super::table::{number, word};
use super::unit::{Scale, time};
use super::wording::sentence;
use doorbell_results::record::ResultFile;
use doorbell_results::record::series::Quantity;

#[derive(Debug)]
pub struct Quantities;

impl Section for Quantities {
    fn name(&self) -> &'static str {
        "quantities"
    }
    fn answer(&self, _: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        let headed = |quantity| {
            let mut rows = figures.having(|_| quantity);
            rows.retain(|(row, _)| row.variant.headline() == quantity);
            (quantity, rows)
        };
        // Where nothing else was asked for, the harness is the answer.
        let alone = figures.rows.iter().all(Row::is_harness);
        let mut told: Vec<_> = figures.quantities().into_iter().map(headed).collect();
        told.retain(|(_, rows)| rows.iter().any(|(row, _)| alone || !row.is_harness()));
        let conditions = (CONDITIONS / told.len().max(1)).max(1);
        told.into_iter().map(|(quantity, rows)| short(quantity, rows, conditions)).collect()
    }
    fn details(&self, _: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        tables(figures)
    }
}

/// What the rows say of each other, and the figures by which they are compared.
fn short(quantity: Quantity, mut rows: Vec<Having>, conditions: usize) -> Subsection {
    // The quickest first: of many rows a screen has room for few.
    let judged = Judged::of(&rows, quantity);
    rows.sort_by(|a, b| {
        let [a_ps, b_ps] = [a, b].map(|having| judged.p50_ps(having));
        a.0.is_harness().cmp(&b.0.is_harness()).then(a_ps.total_cmp(&b_ps))
    });
    let scale = Scale::for_ps(rows.iter().map(|having| judged.p50_ps(having)));
    let tail = [(number("p99"), 0.99), (number("p99.9").keep(1), 0.999)];
    let table = Columns::of(&rows, "mechanism")
        .with(number("p50"), |having| scale.show(judged.p50_ps(having)))
        .each(tail, |having: &Having, q| having.1.above(*q, judged.p50_ps(having), scale))
        .cpu(number("CPU"), scale)
        .samples(number("count").keep(2))
        .table(&rows);
    let title = format!("{}, {}", figures::name(quantity), scale.unit.sign());
    Subsection::answer(title, Vec::new(), table).saying(judged.sentences(conditions))
}

/// One table per quantity.
pub fn tables(figures: &Figures) -> Vec<Subsection> {
    let of = |quantity| table(quantity, &figures.having(|_| quantity));
    let mut told: Vec<Subsection> = figures.quantities().into_iter().map(of).collect();
    if !figures.rows.iter().any(Row::is_harness) {
        let note = "The harness's own cost was not measured in this run (mechanism null).";
        told.extend(Subsection::of_lines("", vec![note.to_owned()]));
    }
    told
}

/// What every form of a quantity's table has.
pub(super) fn columns<'a, 'row: 'a>(rows: &[Having<'row>], scale: Scale) -> Columns<'a, Having<'row>> {
    let percentiles = [
        (number("p50"), 0.5),
        (number("p90").keep(3), 0.9),
        (number("p99"), 0.99),
        (number("p99.9").keep(4), 0.999),
        (number("max").keep(5), 1.0),
    ];
    let columns = Columns::of(rows, "mechanism").at(percentiles, scale);
    columns.samples(number("count").keep(6)).cpu(number("CPU").keep(7), scale)
}

fn table(quantity: Quantity, rows: &[Having]) -> Subsection {
    let scale = scale(rows);
    let from = rows.iter().map(|(_, series)| series.min_ps).min().unwrap_or(1) as f64;
    let to = rows.iter().map(|(_, series)| series.max_ps).max().unwrap_or(1) as f64;
    let table = columns(rows, scale)
        .by_block(number("p50 by block").keep(1), scale)
        .with(word("distribution").keep(2), |(_, series)| bars::strip(&series.buckets, from, to))
        .table(rows);
    let title = format!("{}, {}", figures::name(quantity), scale.unit.sign());
    let note = format!(
        "Percentiles: of all samples together. CPU: {}. Distribution: {} to {}, both axes logarithmic.",
        figures::cpu(quantity),
        time(from),
        time(to)
    );
    let common = axis::common(rows.iter().map(|(row, _)| row.configuration()));
    Subsection {
        notes: vec![note],
        ..Subsection::answer(title, vec![sentence(quantity.definition())], table)
    }
    .led_by(all(&common))
}
