// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results as Markdown.

use crate::channels::comparison::{Results, Standing};
use crate::channels::link::{Kind, Place};
use crate::channels::record::Placement;
use crate::channels::variant::Waiting;
use crate::statistics::{Ratio, Stands};
use crate::table::Table;
use std::fmt::Write;

/// One heading and one table for each kind and placement.
pub fn markdown(results: &Results, place: Place, size: usize, rounds: usize) -> String {
    let mut text = String::new();
    for kind in [Kind::RoundTrip, Kind::Stream, Kind::Full, Kind::Gather] {
        for placement in [Placement::TwoCores, Placement::OneCore] {
            let of = |standing: &&Standing| standing.kind == kind && standing.placement == placement;
            let standings: Vec<_> = results.standings.iter().filter(of).collect();
            if !standings.is_empty() {
                table(&mut text, &standings, (kind, placement, place), size, rounds);
            }
        }
    }
    for absence in &results.absences {
        let (channel, waiting) = (absence.rival.name, waits(absence.rival.waiting));
        let _ = writeln!(text, "Not run: {channel} ({waiting}): {}.\n", absence.reason);
    }
    text
}

fn table(
    text: &mut String,
    standings: &[&Standing],
    (kind, placement, place): (Kind, Placement, Place),
    size: usize,
    rounds: usize,
) {
    let what = match kind {
        Kind::RoundTrip => "Round trip",
        Kind::Stream => "Stream",
        Kind::Full => "Stream to a receiver that is behind,",
        Kind::Gather => "Stream of three senders,",
    };
    let cores = if placement == Placement::OneCore { "one core" } else { "two cores" };
    let _ = writeln!(text, "### {what} of {} between {place} on {cores}, {rounds} rounds\n", bytes(size));
    let [first, second] = match kind {
        Kind::RoundTrip => [">p50 ns", ">p99.9 ns"],
        _ => [">ns a message", ">MB/s"],
    };
    let heads = [
        "waits",
        "channel",
        first,
        second,
        ">CPU ns",
        "times ours [95 %]",
        "",
        ">received of sent",
        "faults",
    ];
    let mut table = Table::new(heads);
    for standing in standings {
        let second = match standing.tail {
            Some(tail) => tail.to_string(),
            None => format!("{:.0}", size as f64 * 1000.0 / standing.middle),
        };
        let (ratio, word) = match standing.ratios.first().copied().flatten() {
            None => ("1".to_owned(), "what is set against"),
            Some(ratio) => (ratio.to_string(), place_of(ratio)),
        };
        let [received, faults] = standing.received();
        table.row([
            waits(standing.rival.waiting).to_owned(),
            standing.name(),
            format!("{:.0}", standing.middle),
            second,
            format!("{:.0}", standing.cpu),
            ratio,
            word.to_owned(),
            received,
            faults,
        ]);
    }
    let _ = writeln!(text, "{table}");
}

fn place_of(ratio: Ratio) -> &'static str {
    match ratio.stands(1.0, 1.0) {
        Stands::Below => "**ahead**",
        Stands::Above => "behind",
        Stands::Within | Stands::Undecided => "inconclusive",
    }
}

fn waits(waiting: Waiting) -> &'static str {
    match waiting {
        Waiting::Polls => "polls",
        Waiting::SpinsThenSleeps => "spins, then sleeps",
        Waiting::Sleeps => "blocks",
    }
}

pub fn bytes(size: usize) -> String {
    match size {
        _ if size >= 1 << 20 => format!("{} MiB", size >> 20),
        _ if size >= 1 << 10 => format!("{} KiB", size >> 10),
        _ => format!("{size} bytes"),
    }
}
