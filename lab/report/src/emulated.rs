// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run in an emulator can say before its times: counts, and ratios within the run.

use super::axis;
use super::columns::{Columns, dash};
use super::figures::{Figures, Row};
use super::subsection::Subsection;
use super::table::number;
use super::unit::{count, plain};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::SideCounters;

/// A table of the rows that notify: counts, and the median as a
/// multiple of the shortest under the same conditions.
pub fn counts_and_ratios(figures: &Figures) -> Option<Subsection> {
    let rows: Vec<&Row> = figures.rows.iter().filter(|row| row.configuration().pattern.notifies()).collect();
    let axes = axis::varying(rows.iter().map(|row| row.configuration()));
    let sum = |row: &Row, of: fn(&SideCounters) -> u64| {
        let sides = row.variant.usable().flat_map(|record| &record.sides);
        sides.fold(0_u64, |sum, side| sum.saturating_add(of(side)))
    };
    let table = Columns::along(&axes, "mechanism")
        .with(number("sent"), |row: &&Row| count(row.variant.tally().sent))
        .with(number("lost"), |row| count(row.variant.tally().lost))
        .with(number("late"), |row| count(row.variant.tally().late))
        .with(number("sleeps per notification"), |row| {
            let tally = row.variant.tally();
            match tally.sent.saturating_add(tally.warmup) {
                0 => dash(),
                all => format!("{:.2}", sum(row, |side| side.voluntary_switches) as f64 / all as f64),
            }
        })
        .with(number("preempted").keep(2), |row| count(sum(row, |side| side.involuntary_switches)))
        .with(number("migrated").keep(1), |row| {
            // A kernel that does not count them says nothing of them, and a zero would.
            let sides = row.variant.usable().flat_map(|record| &record.sides);
            let moved = sides.map(|side| side.migrations).collect::<Option<Vec<u64>>>();
            moved.map_or_else(dash, |moved| count(moved.iter().sum()))
        })
        .with(number("p50 ratio"), |row| ratio(row, &rows).map_or_else(dash, plain))
        .table(&rows);
    let note = "Sleeps: voluntary context switches of both sides, warm-up included. p50 ratio: to \
        the shortest median under the same conditions, the harness itself aside.";
    let told = Subsection::of_table("Counts and ratios within this run", table, Vec::new())?;
    Some(told.led_by(note.to_owned()))
}

/// The row's median as a multiple of the shortest among rows that
/// differ from it in the mechanism alone.
fn ratio(row: &Row, rows: &[&Row]) -> Option<f64> {
    let conditions =
        |configuration: &Configuration| Configuration { subject: String::new(), ..configuration.clone() };
    let median = |row: &Row| Some(row.series.get(&row.variant.headline())?.quantile(0.5) as f64);
    let same = rows.iter().filter(|other| {
        !other.is_harness() && conditions(other.configuration()) == conditions(row.configuration())
    });
    let shortest = same.filter_map(|other| median(other)).filter(|ps| *ps > 0.0).reduce(f64::min)?;
    Some(median(row)? / shortest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{configuration, record, result};
    use crate::style::Style;
    use crate::subsection;

    #[test]
    fn ratios_are_to_the_shortest_mechanism_and_never_to_the_harness() {
        let records = vec![
            record(&configuration("futex"), 0, &[8_000_000; 5]),
            record(&configuration("pipe"), 0, &[12_000_000; 5]),
            record(&configuration("null"), 0, &[2_000; 5]),
        ];
        let result = result("ping", records);
        let told = counts_and_ratios(&Figures::of(&result)).expect("rows");
        let text = subsection::text(&[told], &Style { width: 200, ..Style::PLAIN });
        let line =
            |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
        assert!(line("futex").ends_with("1.00"), "{text}");
        assert!(line("pipe").ends_with("1.50"), "{text}");
        assert!(!text.contains("migrated"), "nobody counted them, and a column of nothing goes: {text}");
    }
}
