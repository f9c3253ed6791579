// SPDX-License-Identifier: MIT OR Apache-2.0
//! A result for the terminal: one table per quantity with its definition, then everything that is no figure by name.

use super::anatomy;
use super::axis;
use super::bars;
use super::claims;
use super::emulated;
use super::extra::Extra;
use super::fanout;
use super::figures::{self, Distribution, Figures, Row};
use super::idle;
use super::io;
use super::load;
use super::net;
use super::notifications;
use super::pairs::Matrix;
use super::passage::{self, Passage, heads};
use super::run_context;
use super::style::{Role, Style};
use super::switch;
use super::table::{Table, number, word};
use super::tasks;
use super::unit::{Scale, count, time};
use super::warnings;
use super::why;
use super::wording::{counted, four_digits, sentence, shown};
use doorbell_results::plan::Layout::{self, *};
use doorbell_results::record::ResultFile;
use doorbell_results::record::series::Quantity;
/// Columns of a distribution's strip.
const STRIP: usize = 24;

/// The whole result.
pub fn summary(result: &ResultFile, style: &Style) -> String {
    if result.plan.layout == Layout::Survey {
        return super::survey::survey(result, style);
    }
    let figures = Figures::of(result);
    let mut out = run_context::head(result, style);
    if result.emulated() {
        out.extend(emulated::counts_and_ratios(&figures).map(|told| passage::text(&[told], style)));
    }
    let layout = result.plan.layout;
    match (layout, passages(result, &figures)) {
        (Layout::Pairs, _) => out.push_str(&pairs(&figures, style)),
        (Layout::Stages, _) => out.push_str(&anatomy::tables(result, style)),
        (Layout::SlowWakes, _) => out.push_str(&why::text(result, style)),
        (_, None) => out.push_str(&tables(&figures, style)),
        (_, Some(passages)) => out.push_str(&passage::text(&passages, style)),
    }
    if !matches!(layout, Operations | Tasks | Io | FanOut | Net) {
        out.push_str(&passage::text(&other_figures(&figures), style));
    }
    if !matches!(layout, Operations | Tasks | Io) {
        out.push_str(&notifications::text(&figures, style));
    }
    out.push_str(&passage::text(&load::passages(&figures), style));
    out.push_str(&claims::text(result, style));
    out.extend(run_context::primitives(result).map(|primitives| passage::text(&[primitives], style)));
    out.push_str(&run_context::absent(&figures, style));
    out.push_str(&warnings::text(result, style));
    out
}

/// What an experiment tells in tables of its own; none of those whose figures are one table per quantity.
pub fn passages(result: &ResultFile, figures: &Figures) -> Option<Vec<Passage>> {
    Some(match result.plan.layout {
        Operations => switch::passages(figures),
        FanOut => fanout::passages(figures),
        Tasks => tasks::passages(figures),
        Io => io::passages(result, figures),
        Net => net::passages(figures),
        Idle => idle::passages(result, figures),
        Survey | Pairs | Stages | SlowWakes | Quantities => return None,
    })
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
        line.extend([0.5, 0.9, 0.99, 0.999, 1.0].map(|q| scale.show(series.quantile(q) as f64)));
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
        "CPU: {}. Distribution: {} to {}, both axes logarithmic.",
        figures::cpu(quantity),
        time(from),
        time(to)
    );
    out.push_str(&style.wrap(&note, 0));
    out
}

/// The figures of `doorbell pairs` as one matrix per mechanism, with the best and the worst pair named.
fn pairs(figures: &Figures, style: &Style) -> String {
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
        if let (Some(best), Some(worst)) = (matrix.best(), matrix.worst()) {
            let line = format!(
                "Best pair: {},{} with {}. Worst: {},{} with {}, {:.2} times as much.",
                best.from,
                best.to,
                time(best.p50_ps),
                worst.from,
                worst.to,
                time(worst.p50_ps),
                worst.p50_ps / best.p50_ps.max(1.0)
            );
            out.push_str(&style.wrap(&line, 0));
            let unpinned = rest.iter().find(|row| {
                row.configuration().subject == matrix.subject && row.configuration().placement.cpus.is_none()
            });
            if let Some(series) = unpinned.and_then(|row| row.series.get(&row.variant.headline())) {
                let ps = series.quantile(0.5) as f64;
                let line = format!(
                    "Left to the scheduler: {}, {:.2} times as much as the best pair.",
                    time(ps),
                    ps / best.p50_ps.max(1.0)
                );
                out.push_str(&style.wrap(&line, 0));
            }
        }
    }
    if !rest.is_empty() {
        let rest = Figures { rows: rest.into_iter().cloned().collect(), absent: Vec::new() };
        out.push_str(&tables(&rest, style));
    }
    out
}

/// The single figures beside the series, one table per unit: the median of the trials and how far they lie apart.
pub fn other_figures(figures: &Figures) -> Vec<Passage> {
    let extras = Extra::of(figures);
    let tables = extras.chunk_by(|a, b| a.unit == b.unit).filter_map(|of_unit| {
        let axes = axis::varying(of_unit.iter().map(|extra| extra.row.configuration()));
        let mut columns = heads(&axes, "mechanism");
        columns.extend([
            word("figure"),
            number("median"),
            number("by trial").keep(2),
            number("trials").keep(3),
            word("formula").keep(1),
        ]);
        let mut table = Table::new(columns);
        for extra in of_unit {
            let (low, high) = extra.range();
            let mut line: Vec<String> = axes.iter().map(|axis| shown(*axis, extra.row)).collect();
            line.push(extra.name.to_owned());
            line.push(four_digits(extra.median()));
            line.push(format!("{}..{}", four_digits(low), four_digits(high)));
            line.push(count(extra.values.len() as u64));
            line.push(extra.formula.to_owned());
            table.row(line);
        }
        let unit = if of_unit[0].unit.is_empty() { "without unit" } else { of_unit[0].unit };
        Passage::of_table(format!("Other figures, {unit}"), table, Vec::new())
    });
    tables.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{configuration, record, result, warning};
    use doorbell_results::configuration::{Configuration, Pattern, Placement, Timing};
    use doorbell_results::record::{Figure, LastSeen, Outcome, Violation};

    const TERMINAL: Style = Style { width: 120, color: false, unicode: true };

    fn rich() -> ResultFile {
        let gap = |subject: &str, gap_ns| Configuration {
            pattern: Pattern::OneWay { gap_ns },
            timing: Timing::Stamp,
            ..configuration(subject)
        };
        let blocked = Configuration { timing: Timing::Blocked, ..gap("pipe", 1_000_000) };
        let mut records = Vec::new();
        for block in 0..3 {
            let drift = u64::from(block) * 20_000;
            records.push(record(
                &gap("futex", 10_000),
                block,
                &[8_300_000 + drift, 8_400_000, 8_900_000, 31_000_000],
            ));
            records.push(record(
                &gap("futex", 1_000_000),
                block,
                &[34_000_000 + drift, 35_500_000, 120_000_000],
            ));
            records.push(record(&gap("null", 10_000), block, &[25_000, 25_000, 26_000, 31_000]));
        }
        records[0].warnings.push(warning("interference"));
        records[3].warnings.push(warning("interference"));
        records[1].tally.lost = 2;
        records[1].tally.late = 1;
        records[4].figures.push(Figure {
            name: "per real switch".into(),
            value: 1234.5678,
            unit: "ns".into(),
            formula: "window / switches".into(),
        });
        let mut lacking = record(&gap("futex-io-uring", 10_000), 0, &[]);
        lacking.outcome = Outcome::Skipped { reason: "kernel 6.1 has no io_uring futex (needs 6.7)".into() };
        let mut implausible = record(&blocked, 0, &[5]);
        implausible.outcome = Outcome::Implausible {
            violations: vec![Violation {
                rule: "never-slept".into(),
                evidence: "0 switches in 1,000 waits".into(),
            }],
        };
        let mut hung = record(&blocked, 1, &[5]);
        hung.outcome = Outcome::Hung {
            last_seen: vec![LastSeen { side: "waiter".into(), step: "waits".into(), sequence: 17 }],
        };
        records.extend([lacking, implausible, hung]);
        let mut result = result("ping", records);
        result.warnings.push(warning("primitive-costs-drifted"));
        result
    }

    #[test]
    fn a_rich_result_on_a_terminal() {
        insta::assert_snapshot!(summary(&rich(), &TERMINAL));
    }

    #[test]
    fn the_same_result_in_eighty_columns_of_ascii() {
        let text = summary(&rich(), &Style { width: 80, ..Style::PLAIN });
        assert!(text.is_ascii());
        for line in text.lines() {
            assert!(line.len() <= 80, "{} columns: {line}", line.len());
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn pairs_are_a_matrix_with_the_best_and_the_worst_named() {
        let pair = |from, to| Configuration {
            placement: Placement { relation: "cpus".into(), cpus: Some([from, to]) },
            ..configuration("spin")
        };
        let records = vec![
            record(&pair(0, 1), 0, &[52_000; 5]),
            record(&pair(1, 0), 0, &[53_000; 5]),
            record(&pair(0, 2), 0, &[180_000; 5]),
            record(&configuration("null"), 0, &[25_000]),
        ];
        insta::assert_snapshot!(summary(&result("pairs", records), &TERMINAL));
    }

    #[test]
    fn a_run_without_any_figure_says_so() {
        let text = summary(&result("ping", Vec::new()), &Style::PLAIN);
        assert!(text.contains("No trial of this run has figures."), "{text}");
    }

    #[test]
    fn a_figure_of_a_bad_trial_stands_nowhere() {
        let mut bad = record(&configuration("pipe"), 0, &[777_000_000]);
        bad.outcome = Outcome::Implausible {
            violations: vec![Violation { rule: "below-primitive-cost".into(), evidence: "12 ns".into() }],
        };
        let good = record(&configuration("futex"), 0, &[8_000_000]);
        let text = summary(&result("ping", vec![bad, good]), &Style::PLAIN);
        assert!(!text.contains("777"), "{text}");
        assert!(text.contains("implausible pipe: below-primitive-cost: 12 ns"), "{text}");
    }

    #[test]
    fn numbers_have_four_digits() {
        for (value, text) in
            [(1234.5678, "1235"), (0.000123456, "0.0001235"), (0.0, "0"), (12.5, "12.5"), (-3.0, "-3")]
        {
            assert_eq!(four_digits(value), text);
        }
    }
}
