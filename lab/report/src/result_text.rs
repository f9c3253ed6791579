// SPDX-License-Identifier: MIT OR Apache-2.0
//! A result on a terminal: what it answers, or all that it holds.

use super::judgement::{Answer, answer};
use super::screen::{LINES, caution, screen};
use super::style::Style;
use super::subsection;
use super::summary::summary;
use doorbell_results::record::ResultFile;

/// How much of a result is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The first screen.
    Brief,
    /// The first screen, then every table, warning and primitive cost.
    Full,
}

/// `result`; the baseline of a check is looked for among `others`.
pub fn shown(result: &ResultFile, others: &[&ResultFile], detail: Detail, style: &Style) -> String {
    match result.plan.question.as_ref().map(|question| answer(question, result, others)) {
        Some(Ok(answer)) => judged(&answer, result, detail, style),
        Some(Err(error)) => {
            let line = style.wrap(&format!("What was asked of this run cannot be answered: {error}."), 0);
            line + &shown_alone(result, detail, style)
        }
        None => shown_alone(result, detail, style),
    }
}

fn shown_alone(result: &ResultFile, detail: Detail, style: &Style) -> String {
    let first = screen(result, style);
    if detail == Detail::Brief { first } else { first + "\n" + &summary(result, style) }
}

/// Rows of the table behind a verdict at the most and at the least, as there is room.
const ROWS: std::ops::RangeInclusive<usize> = 3..=10;

/// The answer to a question that was asked of `result`.
pub fn judged(answer: &Answer, result: &ResultFile, detail: Detail, style: &Style) -> String {
    match detail {
        Detail::Full => {
            subsection::verdict(&answer.subsections, result, style) + "\n" + &summary(result, style)
        }
        Detail::Brief => {
            let told: Vec<_> = answer.subsections.iter().filter(|told| !told.aside).cloned().collect();
            let before = caution(result, style);
            let room = LINES.saturating_sub(before.lines().count());
            before + &subsection::fitted(&told, ROWS, room, style)
        }
    }
}
