// SPDX-License-Identifier: MIT OR Apache-2.0
//! A result for the terminal: its sections, then everything that they do not tell, by name.

use super::claims;
use super::columns::Columns;
use super::emulated;
use super::extra::Extra;
use super::figures::Figures;
use super::load;
use super::notifications;
use super::run_context;
use super::sections;
use super::style::Style;
use super::subsection::{self, Subsection};
use super::table::{number, word};
use super::unit::count;
use super::warnings;
use super::wording::four_digits;
use doorbell_results::record::ResultFile;

pub fn summary(result: &ResultFile, style: &Style) -> String {
    let figures = Figures::of(result);
    let sections = sections::of(&result.plan);
    let mut out = run_context::head(result, style);
    let told = |told: Vec<Subsection>| subsection::text(&told, style);
    if result.emulated() {
        out += &told(emulated::counts_and_ratios(&figures).into_iter().collect());
    }
    match figures.rows.is_empty() {
        true => out += &told(subsection::nothing()),
        false => out.extend(sections.iter().map(|section| section.text(result, &figures, style))),
    }
    let untold = |name: &str| !sections.iter().any(|section| section.tells(name));
    out += &told(other_figures(&figures, untold));
    out += &told(notifications::subsection(&figures).into_iter().collect());
    out += &told(load::subsections(&figures));
    out += &told(claims::subsection(result).into_iter().collect());
    out += &told(run_context::primitives(result).into_iter().collect());
    out.push_str(&run_context::absent(&figures, style));
    out.push_str(&warnings::text(result, style));
    out
}

/// The figures beside the series whose names are `wanted`, one table per unit: the median of the
/// trials and how far they lie apart.
pub fn other_figures(figures: &Figures, wanted: impl Fn(&str) -> bool) -> Vec<Subsection> {
    let mut extras = Extra::of(figures);
    extras.retain(|extra| wanted(extra.name));
    let tables = extras.chunk_by(|a, b| a.unit == b.unit).filter_map(|of_unit| {
        let table = Columns::of(of_unit, "mechanism")
            .with(word("figure"), |extra| extra.name.to_owned())
            .with(number("median"), |extra| four_digits(extra.median()))
            .with(number("by trial").keep(2), |extra| {
                let (low, high) = extra.range();
                format!("{}..{}", four_digits(low), four_digits(high))
            })
            .with(number("trials").keep(3), |extra| count(extra.values.len() as u64))
            .with(word("formula").keep(1), |extra| extra.formula.to_owned())
            .table(of_unit);
        let unit = if of_unit[0].unit.is_empty() { "without unit" } else { of_unit[0].unit };
        Subsection::of_table(format!("Other figures, {unit}"), table, Vec::new())
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
