// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything the page tells of one experiment, over all files of it.

use super::Source;
use super::anatomy::{Dissection, dissections};
use super::groups::{Item, items, slug};
use super::sections::{self, Section, sections};
use super::tables::{self, Captioned};
use crate::answer;
use crate::chart::pairs;
use crate::command_line::repeat;
use crate::figures::{Figures, Row};
use crate::matrices::Matrices;
use crate::pairs::Matrix;
use crate::section::Section as _;
use crate::sections as of_plan;
use crate::subsection::{Subsection, nothing};
use crate::survey::Survey;
use crate::{axis, comparison, emulated, environment, load, summary};
use doorbell_results::record::question::Question;
use doorbell_verdict::compare::{RELEVANT, compare};

/// One file of a chapter, with its figures and the names of its variants.
pub(super) type Part<'a> = (&'a Source, &'a Figures<'a>, &'a [String]);

#[derive(Debug)]
pub(super) struct Chapter {
    pub name: String,
    /// Stands before every id of the chapter; empty where it is the only one.
    pub prefix: String,
    /// What each file tells by itself.
    pub files: Vec<File>,
    pub comparisons: Vec<Compared>,
    pub matrices: Vec<Map>,
    pub sections: Vec<Section>,
    pub notifications: Option<Captioned>,
}

/// What one file tells by itself.
#[derive(Debug)]
pub(super) struct File {
    pub run: String,
    /// The command that does the run again.
    pub again: String,
    /// What it answers, and what was asked of it and follows.
    pub verdict: Vec<Subsection>,
    pub results: Vec<Subsection>,
    /// Where the time of wake-ups went.
    pub anatomies: Vec<Dissection>,
    /// What others claimed of such runs.
    pub claims: Option<Captioned>,
    /// Loads, idle states and whatever else went on.
    pub conditions: Vec<Subsection>,
    /// Single figures beside the series.
    pub extras: Vec<Subsection>,
}

/// One run against the first.
#[derive(Debug)]
pub(super) struct Compared {
    pub heading: String,
    pub conclusion: String,
    pub table: Captioned,
    pub unmatched: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Map {
    pub heading: String,
    pub verdict: String,
    pub svg: String,
    pub table: Captioned,
}

impl Chapter {
    /// The chapters that `parts` fall into, in the order in which their experiments come first.
    pub(super) fn of<'a>(parts: &[Part<'a>]) -> Vec<Self> {
        let mut experiments: Vec<(&str, Vec<Part<'a>>)> = Vec::new();
        for part in parts {
            let name = part.0.result.plan.experiment.as_str();
            match experiments.iter_mut().find(|(known, _)| *known == name) {
                Some((_, own)) => own.push(*part),
                None => experiments.push((name, vec![*part])),
            }
        }
        let prefixes = prefixes(experiments.iter().map(|(name, _)| *name));
        let chapters = experiments.into_iter().zip(prefixes);
        chapters.map(|((name, parts), prefix)| chapter(name, prefix, &parts)).collect()
    }

    /// Whether several files are told of.
    pub(super) fn several(&self) -> bool {
        self.files.len() > 1
    }

    pub(super) fn has_verdict(&self) -> bool {
        self.files.iter().any(|file| !file.verdict.is_empty())
    }

    pub(super) fn has_results(&self) -> bool {
        self.files.iter().any(|file| !file.results.is_empty())
    }

    pub(super) fn has_anatomy(&self) -> bool {
        self.files.iter().any(|file| !file.anatomies.is_empty())
    }

    pub(super) fn has_claims(&self) -> bool {
        self.files.iter().any(|file| file.claims.is_some())
    }
}

/// What stands before the ids of each chapter; nothing where there is only one.
fn prefixes<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> Vec<String> {
    let only = names.len() == 1;
    let mut prefixes: Vec<String> = Vec::new();
    for (index, name) in names.enumerate() {
        let mut prefix = if only { String::new() } else { format!("{}-", slug(name)) };
        // Two names from elsewhere may differ in nothing that can stand in a link.
        if prefixes.contains(&prefix) {
            prefix.push_str(&format!("{index}-"));
        }
        prefixes.push(prefix);
    }
    prefixes
}

fn chapter(name: &str, prefix: String, parts: &[Part]) -> Chapter {
    let several = parts.len() > 1;
    let items: Vec<Item> = items(parts);
    // What a map shows of many pairs is no row of a table beside it.
    let mapped: Vec<&Row> = parts.iter().flat_map(|(source, figures, _)| mapped(source, figures)).collect();
    let rest = |item: &Item| !mapped.iter().any(|row| std::ptr::eq(*row, item.row));
    let items: Vec<Item> = items.into_iter().filter(rest).collect();
    let maps = parts.iter().filter(|(source, ..)| source.result.plan.has_section(Matrices.name()));
    Chapter {
        name: name.to_owned(),
        files: parts.iter().map(|(source, figures, _)| file(source, figures)).collect(),
        comparisons: comparisons(parts),
        matrices: maps.flat_map(|(source, figures, _)| maps_of(source, figures, several)).collect(),
        sections: sections(&items, several, &prefix, parts.iter().find_map(|(source, ..)| limit(source))),
        notifications: tables::notifications(&items, several),
        prefix,
    }
}

/// Pairs up to which each has its row and line beside the map.
const FEW_PAIRS: usize = 64;

/// The rows of a run's maps, where they are many.
fn mapped<'a>(source: &Source, figures: &'a Figures<'a>) -> Vec<&'a Row<'a>> {
    if !source.result.plan.has_section(Matrices.name()) || figures.rows.len() <= FEW_PAIRS {
        return Vec::new();
    }
    let (_, rest) = Matrix::of(figures);
    figures.rows.iter().filter(|row| !rest.iter().any(|other| std::ptr::eq(*other, *row))).collect()
}

/// What a run's times are held against, picoseconds.
fn limit(source: &Source) -> Option<f64> {
    match &source.result.plan.question {
        Some(Question::Gate(gate)) => Some(gate.limit_ns as f64 * 1e3),
        _ => None,
    }
}

/// The one chart of a run that says most.
pub(super) fn telling((source, figures, ids): &Part) -> Option<String> {
    if source.result.plan.has_section(Matrices.name()) {
        let (matrices, _) = Matrix::of(figures);
        return matrices.first().map(|matrix| pairs::draw(matrix, "round trip").inline());
    }
    let items = items(&[(source, figures, ids)]);
    sections::telling(&items, limit(source)).map(|chart| chart.svg)
}

fn file(source: &Source, figures: &Figures) -> File {
    let result = &source.result;
    let mut verdict = Vec::new();
    if result.plan.has_section(Survey.name()) && !result.emulated() {
        verdict = answer::subsections(&doorbell_verdict::answer::answer(result));
    }
    verdict.extend(source.verdict.iter().cloned());
    let mut conditions = load::subsections(figures);
    conditions.extend(environment::subsection(figures));
    let mut results: Vec<_> =
        emulated::counts_and_ratios(figures).into_iter().filter(|_| result.emulated()).collect();
    match figures.rows.is_empty() {
        true => results.extend(nothing()),
        false => {
            results.extend(of_plan::of(&result.plan).iter().flat_map(|one| one.subsections(result, figures)))
        }
    }
    File {
        run: source.name.clone(),
        again: repeat(result),
        verdict,
        results,
        anatomies: dissections(result),
        claims: tables::claims(result),
        conditions,
        extras: summary::other_figures(figures, |_| true),
    }
}

/// Every further run against the first.
fn comparisons(parts: &[Part]) -> Vec<Compared> {
    let Some(((first, ..), others)) = parts.split_first() else { return Vec::new() };
    let one = |(other, ..): &Part| {
        let compared = compare(&first.result, &other.result, RELEVANT);
        let axes = axis::varying(compared.unmatched.iter().map(|one| one.configuration));
        Compared {
            heading: format!("{} against {}", other.name, first.name),
            conclusion: comparison::conclusion(&compared),
            table: tables::comparison(&compared),
            unmatched: compared
                .unmatched
                .iter()
                .map(|one| format!("{}: {}", axis::label(one.configuration, &axes), one.reason))
                .collect(),
        }
    };
    others.iter().map(one).collect()
}

fn maps_of(source: &Source, figures: &Figures, several: bool) -> Vec<Map> {
    let (matrices, _) = Matrix::of(figures);
    let map = |matrix: &Matrix| Map {
        heading: if several {
            format!("{} · {}", matrix.subject, source.name)
        } else {
            matrix.subject.to_owned()
        },
        verdict: tables::pairs_verdict(matrix),
        svg: pairs::draw(matrix, "round trip").inline(),
        table: tables::pairs(matrix),
    };
    matrices.iter().map(map).collect()
}
