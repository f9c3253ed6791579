// SPDX-License-Identifier: MIT OR Apache-2.0
//! A chart for the terminal: lanes as columns, one line per step, the words on the right.

use crate::model::{Chart, Step};
use std::fmt::Write;

/// Which characters to draw with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glyphs {
    /// Box-drawing characters.
    Unicode,
    /// Seven-bit characters only; words that hold others are transliterated.
    Ascii,
}

/// Columns per lane; the widest lane name has ten characters.
const LANE: usize = 12;

impl Glyphs {
    const fn set(self) -> [char; 6] {
        match self {
            // lane, arrow shaft, start, head right, head left, own step
            Self::Unicode => ['│', '─', '├', '▶', '◀', '●'],
            Self::Ascii => ['|', '-', '+', '>', '<', '*'],
        }
    }

    fn words(self, text: &str) -> String {
        match self {
            Self::Unicode => text.to_owned(),
            Self::Ascii => text.replace('→', "->"),
        }
    }
}

/// The chart as lines of text, each ended by a newline.
///
/// A step that the system did not take by itself (a preemption, a signal) has an exclamation mark
/// before its words; an invariant that a step breaks is named after them.
#[must_use]
pub fn terminal(chart: &Chart, glyphs: Glyphs) -> String {
    let mut out = String::new();
    let mut line = |text: &str| writeln!(out, "{}", text.trim_end()).expect("writing to a string");
    line(&glyphs.words(&chart.title));
    line("");
    let names: String = chart.lanes.iter().map(|name| format!("{name:^LANE$}")).collect();
    line(&format!("    {names}"));
    for (number, step) in (1..).zip(&chart.steps) {
        let mark = if step.interference { "!" } else { " " };
        let breaks = step.breaks.map_or(String::new(), |name| format!("   << {name} no longer holds"));
        let words = glyphs.words(&step.text);
        line(&format!("{number:3} {} {mark} {words}{breaks}", row(chart.lanes.len(), step, glyphs)));
    }
    line("");
    line(&format!("    In the end: {}.", glyphs.words(&chart.end)));
    out
}

/// The lanes' part of one line.
fn row(lanes: usize, step: &Step, glyphs: Glyphs) -> String {
    let [lane, shaft, start, right, left, own] = glyphs.set();
    let column = |index: usize| index * LANE + LANE / 2;
    let mut cells = vec![' '; lanes * LANE];
    for index in 0..lanes {
        cells[column(index)] = lane;
    }
    let from = column(step.from);
    match step.to.map(column) {
        None => cells[from] = own,
        Some(to) => {
            let (low, high) = (from.min(to), from.max(to));
            cells[low..=high].fill(shaft);
            cells[from] = match (from < to, glyphs) {
                (true, _) | (_, Glyphs::Ascii) => start,
                (false, Glyphs::Unicode) => '┤',
            };
            cells[to] = if from < to { right } else { left };
        }
    }
    cells.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        Chart {
            title: "T".to_owned(),
            lanes: vec!["a".to_owned(), "b".to_owned()],
            steps: vec![
                Step::towards(0, 1, "ON 0→1"),
                Step { interference: true, breaks: Some("I1"), ..Step::towards(1, 0, "back") },
                Step::local(1, "alone"),
            ],
            end: "lost".to_owned(),
        }
    }

    #[test]
    fn arrows_run_from_lane_to_lane() {
        let text = terminal(&chart(), Glyphs::Unicode);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[3], "  1       ├───────────▶        ON 0→1");
        assert_eq!(lines[4], "  2       ◀───────────┤      ! back   << I1 no longer holds");
        assert_eq!(lines[5], "  3       │           ●        alone");
    }

    #[test]
    fn ascii_output_is_ascii() {
        let text = terminal(&chart(), Glyphs::Ascii);
        assert!(text.is_ascii(), "{text}");
        assert!(text.contains("+----------->") && text.contains("ON 0->1"));
    }
}
