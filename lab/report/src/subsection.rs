// SPDX-License-Identifier: MIT OR Apache-2.0
//! Subsections: what a view tells of a run, told once and shown on a terminal and on a page alike.

use super::command_line::repeat;
use super::sentence::Sentence;
use super::style::{Role, Style};
use super::table::Table;
use crate::wording::{bound, foreign};
use doorbell_results::record::ResultFile;
use std::ops::RangeInclusive;

/// A title, sentences, a table, and what must be known to read it; each may be missing.
#[derive(Debug, Clone, Default)]
pub struct Subsection {
    /// What it is about, with the table's unit; of a verdict, the verdict.
    pub title: String,
    /// What the title is: a verdict that fails is an error.
    pub role: Role,
    pub lead: Vec<String>,
    pub table: Option<Table>,
    /// Sentences that explain the table.
    pub notes: Vec<String>,
    /// Whether a brief answer leaves it out.
    pub aside: bool,
    /// Whether its first sentence leaves open what it is about.
    pub open: bool,
}

impl Subsection {
    /// Sentences alone; none if there are none.
    pub fn of_lines(title: &str, lead: Vec<String>) -> Option<Self> {
        (!lead.is_empty()).then(|| Self { title: title.to_owned(), lead, ..Self::default() })
    }

    /// Whether its title is a verdict that fails.
    pub(super) fn is_bad(&self) -> bool {
        self.role == Role::Error
    }

    /// A table with its notes; none if it has no row.
    pub fn of_table(title: impl Into<String>, table: Table, notes: Vec<String>) -> Option<Self> {
        let title = title.into();
        (!table.is_empty()).then(|| Self { title, table: Some(table), notes, ..Self::default() })
    }

    pub fn answer(title: impl Into<String>, lead: Vec<String>, table: Table) -> Self {
        Self { title: title.into(), lead, table: Some(table), ..Self::default() }
    }

    /// A verdict, and what stands behind it.
    pub fn verdict(title: String, role: Role, lead: Vec<String>) -> Self {
        Self { title, role, lead, ..Self::default() }
    }

    /// The same with sentences before the table.
    #[must_use]
    pub fn saying(mut self, said: Vec<Sentence>) -> Self {
        self.open = said.first().is_some_and(|first| first.open);
        self.lead = said.into_iter().map(|said| said.text).collect();
        self
    }

    /// The same, of what is left out of a brief answer.
    #[must_use]
    pub fn aside(mut self) -> Self {
        self.aside = true;
        self
    }

    /// The same with a sentence before the table, unless it says nothing.
    #[must_use]
    pub fn led_by(mut self, sentence: String) -> Self {
        self.lead.extend(Some(sentence).filter(|sentence| !sentence.is_empty()));
        self
    }
}

/// The verdict among `subsections`: the first title that is no warning before it.
pub fn said(subsections: &[Subsection]) -> Option<&str> {
    let told = subsections.iter().find(|told| told.role != Role::Warning && !told.title.is_empty())?;
    Some(&told.title)
}

/// The one subsection of a run that has nothing to tell.
pub fn nothing() -> Vec<Subsection> {
    vec![Subsection { lead: vec!["No trial of this run has figures.".to_owned()], ..Subsection::default() }]
}

/// The subsections on a terminal, an empty line before each.
pub fn text(subsections: &[Subsection], style: &Style) -> String {
    let mut out = String::new();
    for subsection in subsections {
        out.push('\n');
        if !subsection.title.is_empty() {
            for line in style.wrap(&subsection.title, 0).lines() {
                out.push_str(&format!("{}\n", style.paint(subsection.role, line)));
            }
        }
        out.extend(subsection.lead.iter().map(|line| style.wrap(line, 0)));
        out.extend(subsection.table.as_ref().map(|table| table.render(style)));
        out.extend(subsection.notes.iter().map(|line| style.wrap(line, 2)));
    }
    out
}

/// The subsections as briefly as they answer: titles, sentences and the first `rows` rows of each
/// table, and not how to read them.
pub fn brief(subsections: &[Subsection], rows: usize, style: &Style) -> String {
    let mut out = String::new();
    for subsection in subsections {
        for line in style.wrap(&subsection.title, 0).lines().filter(|line| !line.is_empty()) {
            out.push_str(&format!("{}\n", style.paint(subsection.role, line)));
        }
        out.extend(subsection.lead.iter().map(|line| style.wrap(line, 0)));
        out.extend(subsection.table.as_ref().map(|table| table.brief(rows, style)));
    }
    out
}

/// The same with as many of `rows` rows as `room` lines leave.
pub fn fitted(subsections: &[Subsection], rows: RangeInclusive<usize>, room: usize, style: &Style) -> String {
    let told = |rows: usize| brief(subsections, rows, style);
    let fits = rows.clone().rev().map(told).find(|text| text.lines().count() <= room);
    fits.unwrap_or_else(|| told(*rows.start()))
}

/// A verdict on a terminal: the sentence, what stands behind it, and
/// the command that does the run of `result` again.
pub fn verdict(subsections: &[Subsection], result: &ResultFile, style: &Style) -> String {
    let mut out =
        bound(result).map_or_else(String::new, |bound| style.paint(Role::Warning, &style.wrap(&bound, 0)));
    if let Some(foreign) = foreign(result) {
        out.push_str(&style.paint(Role::Warning, &style.wrap(&foreign, 0)));
    }
    out.push_str(text(subsections, style).trim_start_matches('\n'));
    let again = repeat(result);
    if !again.is_empty() {
        out.push_str(&format!("Again: {}\n", style.text(&again)));
    }
    out
}

/// "All: …", for what all configurations of a table have in common; empty where that is nothing.
pub(super) fn all(common: &str) -> String {
    if common.is_empty() { String::new() } else { format!("All: {common}.") }
}
