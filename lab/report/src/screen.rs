// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first screen of a result: what it answers, at most twenty lines of eighty columns.
//! Everything else is in [`summary`].
//!
//! [`summary`]: super::summary::summary

use super::answer::provisional;
use super::figures::Figures;
use super::section::leads;
use super::sections;
use super::sentence::Sentence;
use super::style::{Role, Style};
use super::subsection::{Subsection, fitted, nothing};
use super::unit::count;
use super::wording::{beside, cautions};
use doorbell_results::record::verdict::{Status, Verdict};
use doorbell_results::record::{Outcome, ResultFile, Tally};
use doorbell_verdict::answer::{Trust, trusted};
use doorbell_verdict::missed::Missed;

/// Lines of a screen.
pub const LINES: usize = 20;

/// Rows of a table at the most and at the least, as there is room; the rest is told by its number.
const ROWS: std::ops::RangeInclusive<usize> = 3..=12;

/// Why trials have no figures: so many reasons, each of one of them.
const REASONS: usize = 2;

/// What `result` answers.
pub fn screen(result: &ResultFile, style: &Style) -> String {
    let figures = Figures::of(result);
    let trust = trusted(result);
    let mut before = caution(result, style);
    if let Some(found) = trust.provisional {
        before.push_str(&style.paint(Role::Warning, &style.wrap(&provisional(found), 0)));
    }
    let mut after = broken(&figures, style);
    after.extend(beside(result).map(|told| style.paint(Role::Warning, &style.wrap(&told, 0))));
    after.push_str(&style.wrap(&believed(&trust, result), 0));
    let room = LINES.saturating_sub(before.lines().count() + after.lines().count());
    before + &fitted(&answers(result, &figures), ROWS, room, style) + &after
}

/// Why trials have no figures.
fn broken(figures: &Figures, style: &Style) -> String {
    let mut out = String::new();
    let mut told: Vec<&[String]> = Vec::new();
    for absent in figures.absent.iter().filter(|absent| absent.is_error()) {
        // What several broke on is told of the first, and where other
        // trials have figures their number is enough.
        let others = figures.rows.iter().any(|row| row.configuration() == absent.configuration);
        if others || told.len() == REASONS || told.contains(&absent.reasons.as_slice()) {
            continue;
        }
        told.push(&absent.reasons);
        let line = format!("{} {}: {}", absent.configuration.subject, absent.name, absent.reasons.join("; "));
        out.push_str(&style.paint(Role::Error, &style.wrap(&line, 0)));
    }
    out
}

/// What must be said before anything that a run says.
pub fn caution(result: &ResultFile, style: &Style) -> String {
    cautions(result).iter().map(|note| style.paint(Role::Warning, &style.wrap(note, 0))).collect()
}

/// `verdict` on `result` as other programs get it: what people read above it stands in its reason,
/// and a run that was cut, or is no machine's, has answered nothing.
pub fn cautioned(verdict: Verdict, result: &ResultFile) -> Verdict {
    let cautions = cautions(result);
    let found = doorbell_verdict::provisional::provisional(result).filter(|_| verdict.provisional);
    let status = match verdict.status {
        Status::Answered | Status::Passed if !cautions.is_empty() => Status::Inconclusive,
        status => status,
    };
    let before = cautions.into_iter().chain(found.map(provisional));
    let said: Vec<String> = before.map(|caution| ended(&caution)).chain([verdict.reason]).collect();
    Verdict { status, reason: said.join(" "), ..verdict }
}

/// A caution as a sentence among others.
fn ended(caution: &str) -> String {
    if caution.ends_with('.') { caution.to_owned() } else { format!("{caution}.") }
}

fn answers(result: &ResultFile, figures: &Figures) -> Vec<Subsection> {
    let answers = sections::of(&result.plan).into_iter().flat_map(|section| section.answer(result, figures));
    let answers: Vec<Subsection> = answers.collect();
    if figures.rows.is_empty() || answers.is_empty() { nothing() } else { answers }
}

/// The sentences of the first screen.
pub fn sentences(result: &ResultFile, figures: &Figures) -> Vec<Sentence> {
    let told = sections::of(&result.plan).into_iter().flat_map(|section| section.sentences(result, figures));
    let told: Vec<Sentence> = told.collect();
    if figures.rows.is_empty() { leads(nothing()) } else { told }
}

/// What a run that was asked nothing says, for programs: the sentences of its first screen.
pub fn verdict(result: &ResultFile) -> Verdict {
    let figures = Figures::of(result);
    let provisional = trusted(result).provisional.is_some();
    let said = sentences(result, &figures);
    let open = said.first().is_some_and(|first| first.open);
    Verdict {
        status: if provisional || open || figures.rows.is_empty() {
            Status::Inconclusive
        } else {
            Status::Answered
        },
        reason: said.into_iter().map(|said| said.text).chain(beside(result)).collect::<Vec<_>>().join(" "),
        provisional,
        findings: Vec::new(),
    }
}

/// How far to trust it, in a sentence.
fn believed(trust: &Trust, result: &ResultFile) -> String {
    let measured = count(trust.measured as u64);
    let mut parts = vec![match (trust.measured, trust.interfered) {
        (0, _) => "nothing was measured".to_owned(),
        (_, Some(interfered)) => {
            format!("other work interfered with {} of {measured} trials", count(interfered as u64))
        }
        (_, None) => "interference by other work was not measured".to_owned(),
    }];
    let usable = result.records.iter().filter(|record| record.outcome.measured());
    let tally = usable.fold(Tally::default(), |sum, record| sum.plus(&record.tally));
    let missed = Missed { lost: tally.lost, late: tally.late, unsent: 0 };
    if missed.all() > 0 {
        parts.push(format!("of {} wake-ups {}", count(tally.sent), missed.told()));
    }
    if trust.implausible > 0 {
        parts.push(format!("{} gave figures that cannot be true", count(trust.implausible as u64)));
    }
    if trust.broken > 0 {
        parts.push(format!("{} hung or failed", count(trust.broken as u64)));
    }
    let skipped = |outcome: &Outcome| matches!(outcome, Outcome::Skipped { .. });
    let skipped = result.records.iter().filter(|record| skipped(&record.outcome)).count();
    if skipped > 0 {
        parts.push(format!("{} skipped for what this machine lacks", count(skipped as u64)));
    }
    format!("Trust: {}.", parts.join(", "))
}
