// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results as Markdown.

use crate::arm::Waiting;
use crate::contest::{Results, Standing, name_of};
use crate::link::{Kind, Place};
use crate::record::Placement;
use rivals_rounds::statistics::Ratio;
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
        let (channel, waiting) = (absence.channel, waits(absence.waiting));
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
    let place = name_of(place);
    let cores = if placement == Placement::OneCore { "one core" } else { "two cores" };
    let _ = writeln!(text, "### {what} of {} between {place} on {cores}, {rounds} rounds\n", bytes(size));
    let _ = writeln!(
        text,
        "| waits | channel | {} | CPU ns | times ours [95 %] | | received of sent | faults |",
        match kind {
            Kind::RoundTrip => "p50 ns | p99.9 ns",
            _ => "ns a message | MB/s",
        }
    );
    let _ = writeln!(text, "|---|---|---:|---:|---:|---|---|---:|---|");
    for standing in standings {
        let second = match standing.tail {
            Some(tail) => tail.to_string(),
            None => format!("{:.0}", size as f64 * 1000.0 / standing.middle),
        };
        let (ratio, word) = match standing.ratio {
            None => ("1".to_owned(), "what is set against"),
            Some(ratio) => {
                (format!("{:.2} [{:.2}, {:.2}]", ratio.middle, ratio.low, ratio.high), place_of(ratio))
            }
        };
        let name =
            if standing.ours { format!("*{}*", standing.channel) } else { standing.channel.to_owned() };
        let _ = writeln!(
            text,
            "| {} | {name} | {:.0} | {second} | {:.0} | {ratio} | {word} | {} of {} | {} |",
            waits(standing.waiting),
            standing.middle,
            standing.cpu,
            standing.received,
            standing.sent,
            faults(standing)
        );
    }
    text.push('\n');
}

fn place_of(ratio: Ratio) -> &'static str {
    if ratio.high < 1.0 {
        "**ahead**"
    } else if ratio.low > 1.0 {
        "behind"
    } else {
        "undecided"
    }
}

fn faults(standing: &Standing) -> String {
    let counts = [
        ("missing", standing.missing),
        ("repeated", standing.repeated),
        ("corrupt", standing.corrupt),
        ("late", standing.late),
    ];
    let faults: Vec<_> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    if faults.is_empty() { "none".to_owned() } else { faults.join(", ") }
}

fn waits(waiting: Waiting) -> &'static str {
    match waiting {
        Waiting::Polls => "polls",
        Waiting::SpinsThenSleeps => "spins, then sleeps",
        Waiting::Sleeps => "blocks",
    }
}

fn bytes(size: usize) -> String {
    match size {
        _ if size >= 1 << 20 => format!("{} MiB", size >> 20),
        _ if size >= 1 << 10 => format!("{} KiB", size >> 10),
        _ => format!("{size} bytes"),
    }
}
