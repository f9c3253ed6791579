// SPDX-License-Identifier: MIT OR Apache-2.0
//! One table per quantity, with its definition: how results are told that ask for nothing else.

use super::axis;
use super::bars;
use super::between::{CONDITIONS, Judged};
use super::figures::{self, Distribution, Figures, Row, percentiles};
use super::section::Section;
use super::style::{Role, Style};
use super::subsection::{Subsection, heads};
use super::table::{Table, number, word};
use super::unit::{Scale, count, time};
use super::wording::{sentence, shown};
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
    let mut rows: Vec<_> = rows.iter().map(|having| (*having, judged.p50_ps(having))).collect();
    rows.sort_by(|((a, _), a_ps), ((b, _), b_ps)| {
        a.is_harness().cmp(&b.is_harness()).then(a_ps.total_cmp(b_ps))
    });
    let axes = axis::varying(rows.iter().map(|((row, _), _)| row.configuration()));
    let scale = Scale::for_ps(rows.iter().map(|(_, p50_ps)| *p50_ps));
    let mut columns = heads(&axes, "mechanism");
    columns.extend([
        number("p50"),
        number("p99"),
        number("p99.9").keep(1),
        number("CPU"),
        number("count").keep(2),
    ]);
    let mut table = Table::new(columns);
    for ((row, series), p50_ps) in rows {
        let mut line: Vec<String> = axes.iter().map(|axis| shown(*axis, row)).collect();
        line.push(scale.show(p50_ps));
        line.extend([0.99, 0.999].map(|q| series.above(q, p50_ps, scale)));
        line.push(row.cpu_ps().map_or_else(|| "-".to_owned(), |ps| scale.show(ps)));
        line.push(count(series.count));
        table.row(line);
    }
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

fn table(quantity: Quantity, rows: &[(&Row, &Distribution)], style: &Style) -> String {
    let configurations = || rows.iter().map(|(row, _)| row.configuration());
    let axes = axis::varying(configurations());
    let scale = Scale::for_ps(rows.iter().map(|(_, series)| series.quantile(0.5) as f64));
    let from = rows.iter().map(|(_, series)| series.min_ps).min().unwrap_or(1) as f64;
    let to = rows.iter().map(|(_, series)| series.max_ps).max().unwrap_or(1) as f64;

    let mut columns = heads(&axes, "mechanism");
    columns.extend([
        number("p50"),
        number("p90").keep(3),
        number("p99"),
        number("p99.9").keep(4),
        number("max").keep(5),
        number("count").keep(6),
        number("CPU").keep(7),
        number("p50 by block").keep(1),
        word("distribution").keep(2),
    ]);
    let mut table = Table::new(columns);
    for (row, series) in rows {
        let mut line: Vec<String> = axes.iter().map(|axis| shown(*axis, row)).collect();
        line.extend(percentiles(series, [0.5, 0.9, 0.99, 0.999, 1.0], scale));
        line.push(count(series.count));
        line.push(row.cpu_ps().map_or_else(|| "-".to_owned(), |ps| scale.show(ps)));
        line.push(series.spread_ps().map_or_else(String::new, |(low, high)| {
            format!("{}..{}", scale.show(low as f64), scale.show(high as f64))
        }));
        line.push(bars::strip(&series.buckets, from, to, STRIP, style));
        table.row(line);
    }

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
