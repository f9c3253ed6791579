// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page as its template sees it.

use askama::Template;
use serde_json::Value;

use super::anatomy::{Dissection, dissections};
use super::groups::{ids, items};
use super::sections::{Chart, Section, sections};
use super::tables::{self, Table};
use super::{Source, digest, json_for_script};
use crate::machine::doctor::{Finding, Severity, worst};
use crate::verdict::compare::{RELEVANT, compare};
use crate::view::answer::{self, Paragraph};
use crate::view::chart::{floors, pairs, palette};
use crate::view::command_line::command;
use crate::view::emulated::EMULATED;
use crate::view::extra::FloorLine;
use crate::view::figures::{Absent, Figures};
use crate::view::pairs::Matrix;
use crate::view::summary::{counted, date};
use crate::view::unit::{count, time};
use crate::view::warnings::{Cause, Group};
use crate::view::{axis, comparison, doctor};

const STYLE: &str = include_str!("../../../templates/report.css");
const SCRIPT: &str = include_str!("../../../templates/report.js");

#[derive(Debug, Template)]
#[template(path = "report.html")]
pub(super) struct Page {
    title: String,
    version: &'static str,
    policy: String,
    style: String,
    script: &'static str,
    data: String,
    runs: Vec<Run>,
    comparisons: Vec<Compared>,
    sections: Vec<Section>,
    matrices: Vec<Map>,
    notifications: Option<Table>,
    absent: Vec<Missing>,
    warnings: Vec<Caution>,
    no_figures: bool,
    no_harness: bool,
}

/// What is told of one file.
#[derive(Debug)]
struct Run {
    name: String,
    partial: bool,
    /// What to say of a run in an emulator.
    emulated: Option<&'static str>,
    facts: Vec<(String, String)>,
    command: String,
    seed: u64,
    machine: Vec<(String, String)>,
    findings: Vec<Finding>,
    fitness: String,
    /// Whether the doctor found the machine unfit to measure.
    unfit: bool,
    floors: Option<Table>,
    floor_chart: Option<Chart>,
    /// What others claimed of such runs.
    claims: Option<Table>,
    /// Where the time of wake-ups went.
    anatomies: Vec<Dissection>,
    /// Loads and idle states.
    conditions: Vec<Table>,
    extras: Vec<Table>,
    cells: Vec<String>,
    share: String,
    /// What a survey says.
    answer: Vec<Paragraph>,
}

/// One run against the first.
#[derive(Debug)]
struct Compared {
    heading: String,
    conclusion: String,
    table: Table,
    unmatched: Vec<String>,
}

/// A map of CPU pairs.
#[derive(Debug)]
struct Map {
    heading: String,
    verdict: String,
    svg: String,
    table: Table,
}

/// Trials without figures.
#[derive(Debug)]
struct Missing {
    run: String,
    name: &'static str,
    error: bool,
    cell: String,
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

const FLOORS: &str = "What the machine itself costs, read before each block of trials and after the last. Flat lines mean \
    that the machine held still; where a floor moved, figures taken around it moved with it.";

impl Page {
    pub(super) fn of(sources: &[Source]) -> serde_json::Result<Self> {
        let several = sources.len() > 1;
        let figures: Vec<Figures> = sources.iter().map(|source| Figures::of(&source.result)).collect();
        let ids = ids(&figures);
        let items = items(sources, &figures, &ids);
        let mut matrices = Vec::new();
        for (source, figures) in sources.iter().zip(&figures) {
            if source.result.plan.experiment == "pairs" {
                matrices.extend(maps(source, figures, several));
            }
        }
        let style = format!("{}{STYLE}", palette::STYLE);
        let policy = format!(
            "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
            digest(&style),
            digest(SCRIPT)
        );
        let results: Vec<_> = sources.iter().map(|source| &source.result).collect();
        Ok(Self {
            title: title(sources),
            version: env!("CARGO_PKG_VERSION"),
            policy,
            style,
            script: SCRIPT,
            data: json_for_script(&results)?,
            comparisons: comparisons(sources),
            sections: sections(&items, several),
            matrices,
            notifications: tables::notifications(&items, several),
            absent: sources
                .iter()
                .zip(&figures)
                .flat_map(|(source, figures)| missing(source, figures))
                .collect(),
            warnings: sources.iter().flat_map(cautions).collect(),
            no_figures: items.is_empty(),
            no_harness: !items.is_empty() && !items.iter().any(|item| item.row.is_harness()),
            runs: sources.iter().zip(&figures).map(|(source, figures)| run(source, figures)).collect(),
        })
    }

    fn has_answer(&self) -> bool {
        self.runs.iter().any(|run| !run.answer.is_empty())
    }

    fn has_anatomy(&self) -> bool {
        self.runs.iter().any(|run| !run.anatomies.is_empty())
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
        _ => {
            let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
            format!("doorbell: {}", names.join(" and "))
        }
    }
}

/// Every further run against the first.
fn comparisons(sources: &[Source]) -> Vec<Compared> {
    let Some((first, others)) = sources.split_first() else { return Vec::new() };
    let one = |other: &Source| {
        let compared = compare(&first.result, &other.result, RELEVANT);
        let axes = axis::varying(compared.unmatched.iter().map(|cell| cell.cell));
        Compared {
            heading: format!("{} against {}", other.name, first.name),
            conclusion: comparison::conclusion(&compared),
            table: tables::comparison(&compared),
            unmatched: compared
                .unmatched
                .iter()
                .map(|cell| format!("{}: {}", axis::label(cell.cell, &axes), cell.reason))
                .collect(),
        }
    };
    others.iter().map(one).collect()
}

fn run(source: &Source, figures: &Figures) -> Run {
    let result = &source.result;
    let samples = figures
        .rows
        .iter()
        .flat_map(|row| row.series.get(&row.arm.headline()))
        .fold(0_u64, |sum, series| sum.saturating_add(series.count));
    let wall_ns = result.finished_at_unix_ns.saturating_sub(result.started_at_unix_ns);
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let facts = vec![
        fact("experiment", result.plan.experiment.clone()),
        fact("machine", doctor::title(&result.machine)),
        fact("started", date(result.started_at_unix_ns)),
        fact("took", time(wall_ns as f64 * 1e3)),
        fact(
            "plan",
            format!(
                "{}, {}, seed {}",
                counted(result.plan.cells.len() as u64, "cell"),
                counted(result.plan.blocks.into(), "block"),
                result.plan.seed
            ),
        ),
        fact("trials", count(result.records.len() as u64)),
        fact("samples of the headline quantities", count(samples)),
        fact("written by", format!("doorbell {}, layout {}", result.tool_version, result.schema_version)),
    ];
    let floors_read = FloorLine::of(result);
    let axes = axis::varying(result.plan.cells.iter());
    Run {
        name: source.name.clone(),
        partial: result.partial,
        emulated: result.emulated().then_some(EMULATED),
        facts,
        command: command(&result.command_line),
        seed: result.plan.seed,
        machine: machine(result),
        fitness: if result.machine.findings.is_empty() {
            String::new()
        } else {
            doctor::verdict(&result.machine.findings)
        },
        unfit: worst(&result.machine.findings) == Severity::Unfit,
        findings: result.machine.findings.clone(),
        floors: tables::floors(result),
        floor_chart: floors::draw(&floors_read).map(|picture| Chart {
            heading: "Floors over the run".to_owned(),
            how: FLOORS,
            svg: picture.inline(),
            wide: false,
        }),
        claims: tables::claims(result),
        anatomies: dissections(result),
        conditions: tables::loads(figures).into_iter().chain(tables::idle_states(figures)).collect(),
        extras: tables::extras(figures),
        cells: result.plan.cells.iter().map(|cell| axis::label(cell, &axes)).collect(),
        share: share_block(source, figures),
        answer: if result.plan.experiment == "survey" {
            answer::paragraphs(&crate::verdict::answer::answer(result))
        } else {
            Vec::new()
        },
    }
}

/// Everything stored of the machine, one line each.
fn machine(result: &crate::record::ResultFile) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    if let Ok(mut value) = serde_json::to_value(&result.machine) {
        // The findings have a table of their own.
        value.as_object_mut().map(|fields| fields.remove("findings"));
        flatten("", &value, &mut facts);
    }
    facts
}

fn flatten(name: &str, value: &Value, facts: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.replace('_', " ");
                flatten(&if name.is_empty() { key } else { format!("{name}: {key}") }, value, facts);
            }
        }
        Value::Array(values) if values.iter().any(Value::is_object) => {
            for (index, value) in values.iter().enumerate() {
                let words: Vec<String> = value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(_, value)| !value.is_null())
                    .map(|(key, value)| format!("{} {}", key.replace('_', " "), plain(value)))
                    .collect();
                facts.push((format!("{name} {}", index + 1), words.join(", ")));
            }
        }
        value => facts.push((name.to_owned(), plain(value))),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn maps(source: &Source, figures: &Figures, several: bool) -> Vec<Map> {
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

fn missing(source: &Source, figures: &Figures) -> Vec<Missing> {
    let axes = axis::varying(figures.absent.iter().map(|absent| absent.cell));
    let one = |absent: &Absent| Missing {
        run: source.name.clone(),
        name: absent.name,
        error: absent.is_error(),
        cell: axis::label(absent.cell, &axes),
        trials: counted(absent.trials as u64, "trial"),
        reasons: absent.reasons.clone(),
    };
    figures.absent.iter().map(one).collect()
}

fn cautions(source: &Source) -> Vec<Caution> {
    Group::of(&source.result)
        .into_iter()
        .map(|group| Caution {
            run: source.name.clone(),
            name: group.warning.name.clone(),
            times: group.times(),
            causes: group.causes.iter().map(Cause::sentence).collect(),
            effect: group.warning.effect.clone(),
            cure: group.warning.cure.clone(),
        })
        .collect()
}

/// A short text for an issue or a chat: what was run, where, the five quickest arms and the digest of the result.
fn share_block(source: &Source, figures: &Figures) -> String {
    let result = &source.result;
    let mut rows: Vec<_> = figures
        .rows
        .iter()
        .filter(|row| !row.is_harness())
        .filter_map(|row| Some((row, row.series.get(&row.arm.headline())?)))
        .collect();
    rows.sort_by_key(|(_, series)| series.quantile(0.5));
    let axes = axis::varying(rows.iter().map(|(row, _)| row.cell()));
    let mut lines = vec![
        format!("doorbell {} · {} · {}", result.tool_version, source.name, date(result.started_at_unix_ns)),
        doctor::title(&result.machine),
        format!("$ {}", command(&result.command_line)),
    ];
    for (row, series) in rows.iter().take(5) {
        let at = |q: f64| time(series.quantile(q) as f64);
        lines.push(format!(
            "{}: p50 {}, p99 {}, p99.9 {}, {} samples",
            axis::label(row.cell(), &axes),
            at(0.5),
            at(0.99),
            at(0.999),
            count(series.count)
        ));
    }
    if rows.len() > 5 {
        lines.push(format!("and {} more", counted(rows.len() as u64 - 5, "arm")));
    }
    let bad = figures.absent.iter().filter(|absent| absent.is_error()).count();
    lines.push(format!(
        "{}, {} without figures",
        counted(Group::of(result).len() as u64, "warning"),
        counted(bad as u64, "cell")
    ));
    if let Ok(text) = serde_json::to_string(result) {
        lines.push(format!("result {}", digest(&text)));
    }
    lines.join("\n")
}
