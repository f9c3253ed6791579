// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was seen, as Markdown.

use crate::partner::Place;
use crate::table::Table;
use crate::wakes::chunk::Chunk;
use crate::wakes::configuration::Configuration;
use crate::wakes::probe::{Ending, Evidence, Outcome};
use crate::wakes::variant::Kind;
use std::fmt::Write;

/// One means of waking in one place.
#[derive(PartialEq, Eq)]
pub struct Row<'a> {
    pub name: &'a str,
    pub place: Place,
    pub kind: Kind,
}

impl Row<'_> {
    pub fn is_of(&self, chunk: &Chunk) -> bool {
        chunk.configuration.variant == self.name && chunk.configuration.place == self.place
    }
}

/// Those there are anything of, threads first, and in each place ours
/// first and what was planted last.
pub fn variants_of(chunks: &[Chunk]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row> = Vec::new();
    for chunk in chunks {
        let row =
            Row { name: &chunk.configuration.variant, place: chunk.configuration.place, kind: chunk.kind };
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let rank = |kind| match kind {
        Kind::Ours => 0,
        Kind::ByHand => 1,
        Kind::Rival => 2,
        Kind::Planted => 3,
    };
    rows.sort_by_key(|row| (row.place == Place::Processes, rank(row.kind), row.name));
    rows
}

/// A table for each place, and under it what every wait that was not woken was followed by.
pub fn markdown(chunks: &[Chunk]) -> String {
    let mut text = String::new();
    let rows = variants_of(chunks);
    for place in [Place::Threads, Place::Processes] {
        if rows.iter().any(|row| row.place == place) {
            let mut table = Table::new([
                "means of waking",
                ">seconds",
                ">notifications",
                ">waits",
                ">ended without a wake though something was pending",
                "pending then",
                "what ended it",
                ">calls that did not return",
                ">woken late",
            ]);
            for row in rows.iter().filter(|row| row.place == place) {
                let of_row: Vec<_> = chunks.iter().filter(|chunk| row.is_of(chunk)).collect();
                table.row(configurations(row, &of_row));
            }
            let _ = writeln!(text, "### Between {place}\n\n{table}");
        }
    }
    for chunk in chunks {
        if let Err(reason) = &chunk.result {
            let Configuration { variant, place, notifiers, .. } = &chunk.configuration;
            let _ = writeln!(text, "Came to nothing: {variant}, {place}, {notifiers} notifiers: {reason}.\n");
        }
    }
    text
}

fn configurations(row: &Row, chunks: &[&Chunk]) -> [String; 9] {
    let outcomes: Vec<&Outcome> = chunks.iter().filter_map(|chunk| chunk.result.as_ref().ok()).collect();
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(|outcome| of(outcome)).sum::<u64>();
    let unwoken: Vec<&Evidence> = outcomes.iter().flat_map(|outcome| &outcome.unwoken).collect();
    let name = if row.kind == Kind::Ours { format!("*{}*", row.name) } else { row.name.to_owned() };
    let milliseconds: u64 = chunks.iter().map(|chunk| chunk.configuration.lasting_ms).sum();
    let sent = sum(|outcome| outcome.sent);
    let often = match unwoken.len() as u64 {
        0 => "0".to_owned(),
        count => format!("{count} (1 in {})", sent / count),
    };
    let pending =
        match (unwoken.iter().map(|one| one.pending).min(), unwoken.iter().map(|one| one.pending).max()) {
            (Some(least), Some(most)) => format!("{least} to {most}"),
            _ => String::new(),
        };
    [
        name,
        format!("{:.0}", milliseconds as f64 / 1000.0),
        sent.to_string(),
        sum(|outcome| outcome.waits).to_string(),
        often,
        pending,
        endings(&unwoken),
        sum(|outcome| outcome.stalled).to_string(),
        sum(|outcome| outcome.starved).to_string(),
    ]
}

fn endings(unwoken: &[&Evidence]) -> String {
    let words = [
        (Ending::LastLook, "the wait's own last look"),
        (Ending::FurtherWait, "a further wait"),
        (Ending::FurtherNotification, "a further notification"),
        (
            Ending::ByHand,
            "taking it by hand, after three further waits and three further notifications woke nobody",
        ),
        (Ending::NotFound, "nothing, and nothing was found by hand"),
    ];
    let counted = words
        .iter()
        .map(|(ending, words)| (unwoken.iter().filter(|one| one.ending == *ending).count(), words));
    let parts: Vec<_> =
        counted.filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count}: {words}")).collect();
    parts.join("; ")
}
