// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the page tells of one file whatever was measured: the run, its machine, its primitive
//! costs, how to repeat it.

use serde_json::Value;

use super::sections::Chart;
use super::{Source, digest};
use crate::chart::primitives;
use crate::command_line::repeat;
use crate::extra::PrimitiveLine;
use crate::figures::Figures;
use crate::run_context;
use crate::subsection::Subsection;
use crate::table::{Table, number, word};
use crate::unit::{count, time};
use crate::warnings::Group;
use crate::wording::{beside, bound, counted, date, foreign};
use crate::{axis, doctor};
use doorbell_results::machine::doctor::{Finding, Severity, worst};
use doorbell_results::record::ResultFile;
use doorbell_results::record::write::{machine_json, to_json};
use doorbell_results::written::inert;

/// A name, what it is, and whether that is a number.
type Fact = (&'static str, String, bool);

/// What is told of one file.
#[derive(Debug)]
pub(super) struct Run {
    pub name: String,
    /// What must be said before anything that it says.
    pub doubts: Vec<String>,
    /// What was run, when and on what.
    pub facts: Vec<Fact>,
    pub command: String,
    pub machine: Vec<(String, String)>,
    pub findings: Vec<Finding>,
    pub fitness: String,
    /// Whether the doctor found the machine unfit to measure.
    pub unfit: bool,
    pub primitives: Vec<Subsection>,
    pub primitive_chart: Option<Chart>,
    pub configurations: Vec<String>,
    pub share: Vec<String>,
}

const PARTIAL: &str = "interrupted; only what was measured until then is here.";

const PRIMITIVES: &str = "What the machine itself costs, read before each block of trials and \
    after the last. Flat lines mean that the machine held still; where a primitive cost moved, \
    figures taken around it moved with it.";

impl Run {
    /// Of `source`; what it has in common with `first`, the first
    /// file of the page, is not told again.
    pub(super) fn of(source: &Source, figures: &Figures, first: Option<&ResultFile>) -> Self {
        let result = &source.result;
        let axes = axis::varying(result.plan.configurations.iter());
        let known = first.map(machine).unwrap_or_default();
        let new = |finding: &&Finding| first.is_none_or(|first| !first.machine.findings.contains(finding));
        let primitives_read = PrimitiveLine::of(result);
        Self {
            name: source.name.clone(),
            doubts: [
                result.partial.then(|| PARTIAL.to_owned()),
                bound(result),
                foreign(result).map(|said| format!("{said}.")),
                // What was asked of it is told with this beside it.
                beside(result).filter(|_| result.plan.question.is_none()),
            ]
            .into_iter()
            .flatten()
            .collect(),
            facts: facts(result, figures),
            command: repeat(result),
            machine: machine(result).into_iter().filter(|fact| !known.contains(fact)).collect(),
            fitness: if result.machine.findings.is_empty() {
                String::new()
            } else {
                doctor::verdict(&result.machine.findings)
            },
            unfit: worst(&result.machine.findings) == Severity::Unfit,
            findings: result.machine.findings.iter().filter(new).cloned().collect(),
            primitives: run_context::primitives(result).into_iter().collect(),
            primitive_chart: primitives::draw(&primitives_read).map(|picture| Chart {
                heading: "Primitive costs over the run".to_owned(),
                how: PRIMITIVES,
                svg: picture.inline(),
                wide: false,
            }),
            configurations: result
                .plan
                .configurations
                .iter()
                .map(|configuration| axis::label(configuration, &axes))
                .collect(),
            share: share_block(source, figures),
        }
    }
}

fn facts(result: &ResultFile, figures: &Figures) -> Vec<Fact> {
    let samples = figures
        .rows
        .iter()
        .flat_map(|row| row.series.get(&row.variant.headline()))
        .fold(0_u64, |sum, series| sum.saturating_add(series.count));
    let wall_ns = result.finished_at_unix_ns.saturating_sub(result.started_at_unix_ns);
    vec![
        ("experiment", result.plan.experiment.clone(), false),
        ("machine", doctor::title(&result.machine), false),
        ("started", date(result.started_at_unix_ns), false),
        ("took", time(wall_ns as f64 * 1e3), true),
        ("configurations", count(result.plan.configurations.len() as u64), true),
        ("blocks", count(result.plan.blocks.into()), true),
        ("trials", count(result.records.len() as u64), true),
        ("samples of the headline quantities", count(samples), true),
        ("seed", result.plan.seed.to_string(), true),
        ("written by", format!("doorbell {}, layout {}", result.tool_version, result.schema_version), false),
    ]
}

/// The facts in which several runs differ, a line each; what they
/// have in common is taken out of all but the first.
pub(super) fn overview(runs: &mut [Run]) -> Option<Table> {
    let (first, others) = runs.split_first_mut()?;
    if others.is_empty() {
        return None;
    }
    let facts = std::mem::take(&mut first.facts);
    // Numbers stay with their run, even where they happen to be alike.
    let common = |fact: &Fact| !fact.2 && others.iter().all(|run| run.facts.contains(fact));
    let (common, own): (Vec<Fact>, Vec<Fact>) = facts.into_iter().partition(common);
    let heads = own.iter().map(|(name, _, is_number)| if *is_number { number(*name) } else { word(*name) });
    let mut table = Table::new(std::iter::once(word("run")).chain(heads).collect());
    let mut line = |run: &str, facts: &[Fact]| {
        let values = facts.iter().filter(|fact| !common.contains(fact)).map(|(_, value, _)| value.clone());
        table.row(std::iter::once(run.to_owned()).chain(values).collect());
    };
    line(&first.name, &own);
    others.iter().for_each(|run| line(&run.name, &run.facts));
    others.iter_mut().for_each(|run| run.facts.clear());
    first.facts = common;
    Some(table)
}

/// Everything stored of the machine, one line each.
fn machine(result: &ResultFile) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    if let Ok(mut value) = serde_json::from_str::<Value>(&machine_json(&result.machine)) {
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

/// A short text for an issue or a chat: what was run, where, the five
/// quickest variants and the digest of the result.
fn share_block(source: &Source, figures: &Figures) -> Vec<String> {
    let result = &source.result;
    let mut rows: Vec<_> = figures
        .rows
        .iter()
        .filter(|row| !row.is_harness())
        .filter_map(|row| Some((row, row.series.get(&row.variant.headline())?)))
        .collect();
    rows.sort_by_key(|(_, series)| series.quantile(0.5));
    let axes = axis::varying(rows.iter().map(|(row, _)| row.configuration()));
    let mut lines = vec![
        format!("doorbell {} · {} · {}", result.tool_version, source.name, date(result.started_at_unix_ns)),
        doctor::title(&result.machine),
        format!("$ {}", repeat(result)),
    ];
    for (row, series) in rows.iter().take(5) {
        lines.push(format!(
            "{}: p50 {}, p99 {}, p99.9 {}, {} samples",
            axis::label(row.configuration(), &axes),
            series.told(0.5),
            series.told(0.99),
            series.told(0.999),
            count(series.count)
        ));
    }
    if rows.len() > 5 {
        lines.push(format!("and {} more", counted(rows.len() as u64 - 5, "variant")));
    }
    let bad = figures.absent.iter().filter(|absent| absent.is_error()).count();
    lines.push(format!(
        "{}, {} without figures",
        counted(Group::of(result).len() as u64, "warning"),
        counted(bad as u64, "configuration")
    ));
    lines.push(format!("result {}", digest(&to_json(result))));
    lines.iter().map(|line| inert(line)).collect()
}
