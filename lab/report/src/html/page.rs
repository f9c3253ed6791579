// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page as its template sees it.

use std::io::Write as _;

use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use indexmap::IndexMap;

use super::chapter::{Chapter, Part, telling};
use super::groups::ids;
use super::run::{Run, overview};
use super::{ReportError, Source, policy};
use crate::chart::palette;
use crate::figures::{Absent, Figures, Row};
use crate::table::Table;
use crate::warnings::{Cause, Group};
use crate::wording::{counted, date};
use crate::{axis, doctor, judgement, screen, subsection};
use doorbell_results::record::Warning;
use doorbell_results::record::write::to_json;

const STYLE: &str = include_str!("../../templates/report.css");
const SCRIPT: &str = include_str!("../../templates/report.js");

/// The most bytes of packed results that a page carries: with more of
/// them it could no longer be sent by mail.
const MOST_DATA: usize = 2 << 20;

#[derive(Debug, Template)]
#[template(path = "report.html")]
pub(super) struct Page {
    title: String,
    version: &'static str,
    policy: String,
    style: String,
    script: &'static str,
    /// The results, packed; none where they are too large for a page.
    data: Option<String>,
    runs: Vec<Run>,
    /// The runs in a table, where there are several.
    overview: Option<Table>,
    /// What must be said of runs before anything else, and of which.
    doubts: Vec<(String, String)>,
    /// The runs whose machine the doctor found unfit to measure, and why.
    unfit: Vec<(String, String)>,
    cards: Vec<Card>,
    chapters: Vec<Chapter>,
    absent: Vec<Missing>,
    warnings: Vec<Caution>,
    no_figures: bool,
    no_harness: bool,
}

/// What stands on the first page of each run: how it stands, what it says, and one chart.
#[derive(Debug)]
struct Card {
    name: String,
    /// Where the rest is.
    chapter: String,
    experiment: String,
    facts: String,
    status: &'static str,
    /// What the status leaves unsaid.
    but: &'static str,
    lines: Vec<String>,
    svg: Option<String>,
}

impl Card {
    fn of(part: &Part, chapters: &[Chapter]) -> Self {
        let (source, figures, _) = part;
        let result = &source.result;
        let own = chapters.iter().find(|chapter| chapter.name == result.plan.experiment);
        let verdict = result.verdict.clone().unwrap_or_else(|| judgement::verdict(result, &[]));
        let lines = match subsection::said(&source.verdict) {
            Some(said) => vec![said.to_owned()],
            None => screen::sentences(result, figures).into_iter().map(|said| said.text).collect(),
        };
        Self {
            name: source.name.clone(),
            chapter: format!("{}top", own.map_or("", |chapter| &chapter.prefix)),
            experiment: result.plan.experiment.clone(),
            facts: format!("{} · {}", date(result.started_at_unix_ns), doctor::title(&result.machine)),
            status: verdict.status.name(),
            but: match (result.partial, verdict.provisional) {
                (true, _) => ", partial",
                (false, true) => ", provisional",
                (false, false) => "",
            },
            lines: lines.into_iter().take(SENTENCES).collect(),
            svg: telling(part),
        }
    }
}

/// Sentences of a card at the most.
const SENTENCES: usize = 6;

#[derive(Debug)]
struct Missing {
    run: String,
    name: &'static str,
    error: bool,
    configuration: String,
    trials: String,
    reasons: Vec<String>,
}

/// A warning and everything it was said of.
#[derive(Debug)]
struct Caution {
    run: String,
    name: String,
    times: String,
    causes: Vec<String>,
    effect: String,
    cure: String,
}

impl Page {
    pub(super) fn of(sources: &[Source]) -> Result<Self, ReportError> {
        let figures: Vec<Figures> = sources.iter().map(|source| Figures::of(&source.result)).collect();
        let ids = ids(&figures);
        let parts: Vec<Part> = sources
            .iter()
            .zip(&figures)
            .zip(&ids)
            .map(|((source, figures), ids)| (source, figures, ids.as_slice()))
            .collect();
        let rows = || figures.iter().flat_map(|figures| &figures.rows);
        let style = format!("{}{STYLE}", palette::STYLE);
        let policy = policy(&style, SCRIPT);
        let first = sources.first().map(|source| &source.result);
        let mut runs: Vec<Run> = parts
            .iter()
            .enumerate()
            .map(|(index, (source, figures, _))| Run::of(source, figures, first.filter(|_| index > 0)))
            .collect();
        let chapters = Chapter::of(&parts);
        Ok(Self {
            title: title(sources),
            version: env!("CARGO_PKG_VERSION"),
            policy,
            style,
            script: SCRIPT,
            data: packed(sources)?,
            overview: overview(&mut runs),
            doubts: together(runs.iter().flat_map(|run| run.doubts.iter().map(move |text| (run, text)))),
            unfit: together(runs.iter().filter(|run| run.unfit).map(|run| (run, &run.fitness))),
            runs,
            cards: parts.iter().map(|part| Card::of(part, &chapters)).collect(),
            chapters,
            absent: parts.iter().flat_map(|(source, figures, _)| missing(source, figures)).collect(),
            warnings: cautions(sources),
            no_figures: rows().next().is_none(),
            no_harness: rows().next().is_some() && !rows().any(Row::is_harness),
        })
    }

    /// How the report as a whole is to be taken.
    fn mood(&self) -> &'static str {
        if self.absent.iter().any(|absent| absent.error) {
            "error"
        } else if self.warnings.is_empty() {
            "good"
        } else {
            "warning"
        }
    }
}

fn title(sources: &[Source]) -> String {
    match sources {
        [source] => format!("doorbell {}: {}", source.result.plan.experiment, source.name),
        [one, other] => format!("doorbell: {} and {}", one.name, other.name),
        _ => format!("doorbell: {}", counted(sources.len() as u64, "run")),
    }
}

/// What is said of runs, the names of those of which the same is said together.
fn together<'run>(said: impl Iterator<Item = (&'run Run, &'run String)>) -> Vec<(String, String)> {
    let mut told: IndexMap<&String, Vec<&str>> = IndexMap::new();
    for (run, text) in said {
        told.entry(text).or_default().push(&run.name);
    }
    told.into_iter().map(|(text, runs)| (runs.join(", "), text.clone())).collect()
}

/// The results as a JSON array, compressed (gzip) and in the letters
/// of base 64, in which nothing can end an element.
fn packed(sources: &[Source]) -> Result<Option<String>, ReportError> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    let mut between = "[";
    for source in sources {
        packer.write_all(between.as_bytes())?;
        packer.write_all(to_json(&source.result).as_bytes())?;
        between = ",";
    }
    packer.write_all(b"]")?;
    packer.flush()?;
    let bytes = packer.finish()?;
    Ok((bytes.len() <= MOST_DATA).then(|| STANDARD.encode(bytes)))
}

fn missing(source: &Source, figures: &Figures) -> Vec<Missing> {
    let axes = axis::varying(figures.absent.iter().map(|absent| absent.configuration));
    let one = |absent: &Absent| Missing {
        run: source.name.clone(),
        name: absent.name,
        error: absent.is_error(),
        configuration: axis::label(absent.configuration, &axes),
        trials: counted(absent.trials as u64, "trial"),
        reasons: absent.reasons.clone(),
    };
    figures.absent.iter().map(one).collect()
}

/// The warnings of all runs; where several runs have the same with
/// the same causes, it is told once.
fn cautions(sources: &[Source]) -> Vec<Caution> {
    let mut told = IndexMap::new();
    for source in sources {
        for group in Group::of(&source.result) {
            let Warning { name, effect, cure, .. } = group.warning;
            let causes: Vec<String> = group.causes.iter().map(Cause::sentence).collect();
            let (runs, _) = told
                .entry((name, effect, cure, causes))
                .or_insert_with(|| (Vec::<&str>::new(), group.times()));
            runs.push(&source.name);
        }
    }
    let caution =
        |((name, effect, cure, causes), (runs, times)): ((&String, &String, &String, _), (Vec<&str>, _))| {
            let [name, effect, cure] = [name, effect, cure].map(Clone::clone);
            Caution { run: runs.join(", "), name, times, causes, effect, cure }
        };
    told.into_iter().map(caution).collect()
}
