// SPDX-License-Identifier: MIT OR Apache-2.0
//! One table per quantity, with its definition: how results are told that ask for nothing else.

use super::axis::{self, Axis};
use super::bars;
use super::columns::Columns;
use super::figures::{self, Distribution, Figures, Row};
use super::row_comparison::{CONDITIONS, Judged};
use super::section::Section;
use super::style::{Role, Style};
use super::subsection::Subsection;
use super::table::{number, word};
use super::unit::{Scale, time};
use super::wording::sentence;
use doorbell_results::record::ResultFile;
use doorbell_results::record::series::Quantity;

/// Columns of a distribution's strip.
const STRIP: usize = 24;

#[derive(Debug)]
pub struct Quantities;

impl Section for Quantities {
    fn name(&self) -> &'static str {
        "quantities"
    }
    fn answer(&self, _: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        let of = |quantity: Quantity| -> Vec<(&Row, &Distribution)> {
            let headed = figures.rows.iter().filter(|row| row.variant.headline() == quantity);
            headed.filter_map(|row| Some((row, row.series.get(&quantity)?))).collect()
        };
        let all = figures.quantities().into_iter().map(|quantity| (quantity, of(quantity)));
        // Where nothing else was asked for, the harness is the answer.
        let alone = figures.rows.iter().all(Row::is_harness);
        let told: Vec<_> =
            all.filter(|(_, rows)| rows.iter().any(|(row, _)| alone || !row.is_harness())).collect();
        let conditions = (CONDITIONS / told.len().max(1)).max(1);
        told.iter().filter_map(|(quantity, rows)| short(*quantity, rows, conditions)).collect()
    }
    fn text(&self, _: &ResultFile, figures: &Figures, style: &Style) -> String {
        tables(figures, style)
    }
}

/// What the rows say of each other, and the figures by which they are compared.
fn short(quantity: Quantity, rows: &[(&Row, &Distribution)], conditions: usize) -> Option<Subsection> {
    // The quickest first: of many rows a screen has room for few.
    let judged = Judged::of(rows, quantity);
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| {
        let [a_ps, b_ps] = [a, b].map(|having| judged.p50_ps(having));
        a.0.is_harness().cmp(&b.0.is_harness()).then(a_ps.total_cmp(&b_ps))
    });
    let axes = axis::varying(rows.iter().map(|(row, _)| row.configuration()));
    let scale = Scale::for_ps(rows.iter().map(|having| judged.p50_ps(having)));
    let tail = [(number("p99"), 0.99), (number("p99.9").keep(1), 0.999)];
    let table = Columns::along(&axes, "mechanism")
        .with(number("p50"), |having| scale.show(judged.p50_ps(having)))
        .each(tail, |having: &(&Row, &Distribution), q| having.1.above(*q, judged.p50_ps(having), scale))
        .cpu(number("CPU"), scale)
        .samples(number("count").keep(2))
        .table(&rows);
    let title = format!("{}, {}", figures::name(quantity), scale.unit.sign());
    let told = Subsection { title, table: Some(table), ..Subsection::default() };
    Some(told.saying(judged.sentences(conditions)))
}

/// One table per quantity.
pub fn tables(figures: &Figures, style: &Style) -> String {
    let mut out = String::new();
    for quantity in figures.quantities() {
        let rows: Vec<(&Row, &Distribution)> =
            figures.rows.iter().filter_map(|row| Some((row, row.series.get(&quantity)?))).collect();
        out.push_str(&table(quantity, &rows, style));
    }
    if figures.rows.is_empty() {
        out.push_str("\nNo trial of this run has figures.\n");
    } else if !figures.rows.iter().any(Row::is_harness) {
        out.push_str("\nThe harness's own cost was not measured in this run (mechanism null).\n");
    }
    out
}

/// What every form of a quantity's table has.
pub(super) fn columns<'a, 'row: 'a>(
    axes: &[Axis],
    scale: Scale,
) -> Columns<'a, (&'row Row<'row>, &'row Distribution)> {
    let percentiles = [
        (number("p50"), 0.5),
        (number("p90").keep(3), 0.9),
        (number("p99"), 0.99),
        (number("p99.9").keep(4), 0.999),
        (number("max").keep(5), 1.0),
    ];
    let columns = Columns::along(axes, "mechanism").at(percentiles, scale);
    columns.samples(number("count").keep(6)).cpu(number("CPU").keep(7), scale)
}

fn table(quantity: Quantity, rows: &[(&Row, &Distribution)], style: &Style) -> String {
    let configurations = || rows.iter().map(|(row, _)| row.configuration());
    let axes = axis::varying(configurations());
    let scale = Scale::for_ps(rows.iter().map(|(_, series)| series.quantile(0.5) as f64));
    let from = rows.iter().map(|(_, series)| series.min_ps).min().unwrap_or(1) as f64;
    let to = rows.iter().map(|(_, series)| series.max_ps).max().unwrap_or(1) as f64;

    let table = columns(&axes, scale)
        .by_block(number("p50 by block").keep(1), scale)
        .with(word("distribution").keep(2), |(_, series)| {
            bars::strip(&series.buckets, from, to, STRIP, style)
        })
        .table(rows);

    let title = format!("{}, {}", figures::name(quantity), scale.unit.sign());
    let mut out = format!("\n{}\n", style.paint(Role::Heading, &style.text(&title)));
    out.push_str(&style.wrap(&sentence(quantity.definition()), 0));
    let common = axis::common(configurations());
    if !common.is_empty() {
        out.push_str(&style.wrap(&format!("All: {common}."), 0));
    }
    out.push_str(&table.render(style));
    let note = format!(
        "Percentiles: of all samples together. CPU: {}. Distribution: {} to {}, both axes logarithmic.",
        figures::cpu(quantity),
        time(from),
        time(to)
    );
    out.push_str(&style.wrap(&note, 0));
    out
}
