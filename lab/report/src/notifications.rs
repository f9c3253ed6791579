// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became of the notifications, counted by sequence number.

use super::columns::{Columns, dash};
use super::figures::{Figures, Row};
use super::subsection::Subsection;
use super::table::number;
use super::unit::count;
use doorbell_results::configuration::Timing;
use doorbell_results::record::Tally;

/// What became of the notifications, by sequence number: a table of
/// the variants where something happened them.
pub fn subsection(figures: &Figures) -> Option<Subsection> {
    let mut tallies: Vec<(&Row, Tally)> = figures
        .rows
        .iter()
        .filter(|row| row.configuration().pattern.notifies())
        .map(|row| (row, row.variant.tally()))
        .filter(|(_, tally)| tally.sent > 0)
        .collect();
    if tallies.is_empty() {
        return None;
    }
    let happened = |kind: &Irregularity| tallies.iter().any(|(_, tally)| (kind.of)(tally) > 0);
    let (some, none): (Vec<&Irregularity>, Vec<&Irregularity>) =
        IRREGULARITIES.iter().partition(|kind| happened(kind));
    let sent = tallies.iter().fold(0_u64, |sum, (_, tally)| sum.saturating_add(tally.sent));
    let mut line = format!("Notifications, counted by sequence number: {} sent", count(sent));
    if !none.is_empty() {
        let names: Vec<&str> = none.iter().map(|kind| kind.name).collect();
        line.push_str(&format!("; none {}", names.join(", none ")));
    }
    tallies.retain(|(row, tally)| blocked(row) || some.iter().any(|kind| (kind.of)(tally) > 0));
    let mut lead = vec![format!("{line}.")];
    if !tallies.is_empty() {
        lead.extend(some.iter().map(|kind| format!("{}: {}.", kind.name, kind.meaning)));
    }
    let table = counts(&tallies, &some).table(&tallies);
    Some(Subsection { lead, table: Some(table).filter(|table| !table.is_empty()), ..Subsection::default() })
}

fn blocked(row: &Row) -> bool {
    row.configuration().timing == Timing::Blocked
}

/// What every form of the table of notifications has, with a column for each of `kinds`.
pub(super) fn counts<'a, 'row>(
    rows: &[(&'row Row<'row>, Tally)],
    kinds: &[&'static Irregularity],
) -> Columns<'a, (&'row Row<'row>, Tally)> {
    let kinds = kinds.iter().map(|kind| (number(kind.name), kind.of));
    Columns::of(rows, "mechanism")
        .with(number("sent"), |(_, tally): &(&Row, Tally)| count(tally.sent))
        .each(kinds, |(_, tally), of| count(of(tally)))
        .with(number("late share"), |(_, tally)| share(tally.late, tally.seen))
        .with(number("proven asleep"), |(row, tally)| {
            if blocked(row) { share(tally.proven_asleep, tally.sent) } else { dash() }
        })
}

/// Something that can happen to a notification.
#[derive(Debug)]
pub struct Irregularity {
    pub name: &'static str,
    pub meaning: &'static str,
    pub of: fn(&Tally) -> u64,
}

/// Everything that can happen to a notification.
pub const IRREGULARITIES: [Irregularity; 6] = [
    Irregularity { name: "lost", meaning: "never seen", of: |tally| tally.lost },
    Irregularity { name: "late", meaning: "seen only because a timed wait ran out", of: |tally| tally.late },
    Irregularity {
        name: "duplicate",
        meaning: "a wake-up for a number seen before",
        of: |tally| tally.duplicate,
    },
    Irregularity {
        name: "spurious",
        meaning: "a wake-up with nothing behind it",
        of: |tally| tally.spurious,
    },
    Irregularity {
        name: "merged",
        meaning: "seen together with a later one, by one wake-up",
        of: |tally| tally.merged,
    },
    Irregularity {
        name: "timed out",
        meaning: "a timed wait that ran out with nothing to see",
        of: |tally| tally.timeouts,
    },
];

/// A share in percent.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}
