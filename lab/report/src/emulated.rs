// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run in an emulator can say before its times: counts, and ratios within the run.

use super::columns::{Columns, dash};
use super::figures::{Figures, Row};
use super::subsection::Subsection;
use super::table::number;
use super::unit::{count, plain};
use doorbell_results::configuration::Configuration;

/// A table of the rows that notify: counts, and the median as a
/// multiple of the shortest under the same conditions.
pub fn counts_and_ratios(figures: &Figures) -> Option<Subsection> {
    let rows: Vec<&Row> = figures.rows.iter().filter(|row| row.configuration().pattern.notifies()).collect();
    let table = Columns::of(&rows, "mechanism")
        .tally(number("sent"), |tally| tally.sent)
        .tally(number("lost"), |tally| tally.lost)
        .tally(number("late"), |tally| tally.late)
        .with(number("sleeps per notification"), |row| {
            let tally = row.variant.tally();
            match tally.sent.saturating_add(tally.warmup) {
                0 => dash(),
                all => format!("{:.2}", row.sum_of_sides(|side| side.voluntary_switches) as f64 / all as f64),
            }
        })
        .with(number("preempted").keep(2), |row| count(row.sum_of_sides(|side| side.involuntary_switches)))
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
    let median = |row: &Row| row.p50_ps(row.variant.headline());
    let same = rows.iter().filter(|other| {
        !other.is_harness() && conditions(other.configuration()) == conditions(row.configuration())
    });
    let shortest = same.filter_map(|other| median(other)).filter(|ps| *ps > 0.0).reduce(f64::min)?;
    Some(median(row)? / shortest)
}
