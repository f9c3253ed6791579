// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell explain NAME`: what a name that stands in a table, a result file or a warning means.

use std::io::Write;

use serde::Serialize;

use super::common::{Exit, Terminal};
use super::out::Out;
use super::usage::Usage;
use doorbell_harness::load;
use doorbell_harness::primitives::PRIMITIVES;
use doorbell_machine::doctor;
use doorbell_report::notifications::IRREGULARITIES;
use doorbell_report::style::{Role, Style};
use doorbell_report::terms::{self, key};
use doorbell_results::about::About;
use doorbell_results::anatomy::Mark;
use doorbell_results::nearest::{did_you_mean, nearest};
use doorbell_results::record::need;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::warning;
use doorbell_results::written::pretty_json;
use doorbell_subjects::fan;
use doorbell_subjects::mechanism::{self, Explanation};
use doorbell_subjects::{gpu, operation, task, transfer};
use doorbell_verdict::cause;
use doorbell_verdict::plausibility;

/// Arguments of `doorbell explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A mechanism or an operation (`doorbell list` shows them), or a name out of a result: a
    /// figure such as `round-trip`, a warning such as `interference`, a rule such as
    /// `below-primitive-cost`, a primitive cost, a finding of `doorbell doctor`, a stage or a
    /// cause of a slow wake-up, a verdict such as `inconclusive`, a placement such as `same-l3`, a
    /// percentile, or the head of any column
    name: String,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Something with a name that has an explanation.
#[derive(Debug, Serialize)]
struct Topic {
    name: String,
    /// What it is: `mechanism`, `operation`, `kind of task`, `verb`, `fan-out`, `load`, `figure`,
    /// `count`, `primitive cost`, `warning`, `rule`, `finding`, `stage`, `cause`, `need`,
    /// `percentile`, `placement`, `part of a run`, `verdict`, `condition`, `column`.
    kind: &'static str,
    summary: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    sources: &'static [&'static str],
}

#[derive(Debug, Serialize)]
struct Part {
    head: &'static str,
    text: &'static str,
}

/// Where names come from; the one list to extend.
const REGISTRIES: &[fn() -> Vec<Topic>] = &[
    mechanisms,
    operations,
    kinds_of_task,
    io_engines,
    gpu_ways,
    fan_outs,
    loads,
    figures,
    counts,
    primitives,
    warnings,
    rules,
    findings,
    stages,
    causes,
    needs,
    terms,
];

fn mechanisms() -> Vec<Topic> {
    let entries = mechanism::all().iter();
    entries.map(|entry| explained(entry.name(), "mechanism", entry.explanation())).collect()
}

fn operations() -> Vec<Topic> {
    let operations = operation::all().iter();
    operations.map(|operation| explained(operation.name, "operation", operation.explanation)).collect()
}

fn kinds_of_task() -> Vec<Topic> {
    task::all().iter().map(|kind| explained(kind.name, "kind of task", kind.explanation)).collect()
}

fn io_engines() -> Vec<Topic> {
    let engines = transfer::all().iter();
    engines.map(|engine| explained(engine.name, "I/O engine", engine.explanation)).collect()
}

fn gpu_ways() -> Vec<Topic> {
    let topic = |way: &gpu::Way| {
        let parts = vec![
            Part { head: "What is called, and who wakes", text: way.calls },
            Part { head: "What it costs", text: way.costs },
            Part { head: "How it is measured", text: gpu::MEASURED },
        ];
        Topic { parts, sources: gpu::SOURCES, ..plain(way.name, "way to wait for a GPU", way.summary) }
    };
    let all = plain(
        "gpu",
        "verb",
        "What a wake-up between CPU and GPU costs, by every way to wait for a kernel and to \
         start one. `doorbell list` shows the ways; each is explained by its name.",
    );
    let parts = vec![Part { head: "How it is measured", text: gpu::MEASURED }];
    let all = Topic { parts, sources: gpu::SOURCES, ..all };
    std::iter::once(all).chain(gpu::all().iter().map(topic)).collect()
}

/// What only `doorbell fanout` has: the rest are mechanisms.
fn fan_outs() -> Vec<Topic> {
    let own = fan::all().iter().filter(|entry| mechanism::find(entry.name).is_err());
    own.map(|entry| plain(entry.name, "fan-out", entry.summary)).collect()
}

fn loads() -> Vec<Topic> {
    load::all().iter().map(|kind| plain(kind.name, "load", kind.about)).collect()
}

fn figures() -> Vec<Topic> {
    Quantity::ALL.iter().map(|quantity| plain(quantity.name(), "figure", quantity.definition())).collect()
}

fn counts() -> Vec<Topic> {
    IRREGULARITIES.iter().map(|kind| plain(&kind.name.replace(' ', "-"), "count", kind.meaning)).collect()
}

fn primitives() -> Vec<Topic> {
    PRIMITIVES.iter().map(|about| told("primitive cost", *about)).collect()
}

fn warnings() -> Vec<Topic> {
    warning::ALL.iter().map(|about| told("warning", *about)).collect()
}

fn rules() -> Vec<Topic> {
    plausibility::rules().map(|about| told("rule", about)).collect()
}

fn findings() -> Vec<Topic> {
    let findings = doctor::families().map(|(about, source)| {
        let mut topic = told("finding", about);
        topic.parts.push(Part { head: "Sources", text: source });
        topic
    });
    findings.collect()
}

/// What `doorbell anatomy` cuts a wake-up into.
fn stages() -> Vec<Topic> {
    let stages = Mark::ALL.iter().map(|mark| Topic {
        parts: vec![Part { head: "Sources", text: mark.source() }],
        ..plain(mark.stage(), "stage", mark.meaning())
    });
    stages.collect()
}

/// What `doorbell why` finds.
fn causes() -> Vec<Topic> {
    let causes = cause::ALL.iter().map(|cause| {
        let mut topic = told("cause", cause.about);
        topic.parts.push(Part { head: "Cure", text: cause.cure });
        topic
    });
    causes.collect()
}

/// What `doorbell pick` asks a mechanism for.
fn needs() -> Vec<Topic> {
    need::NEEDS.iter().map(|need| plain(need.name, "need", need.meaning)).collect()
}

/// Heads of columns, placements, percentiles, verdicts and parts of a run; most of what has the
/// name of something above is explained there.
fn terms() -> Vec<Topic> {
    terms::terms().map(|[kind, name, meaning]| plain(name, kind, meaning)).collect()
}

fn plain(name: &str, kind: &'static str, summary: &'static str) -> Topic {
    Topic { name: name.to_owned(), kind, summary, parts: Vec::new(), sources: &[] }
}

fn told(kind: &'static str, about: About) -> Topic {
    let parts = vec![
        Part { head: "How it is found", text: about.taken },
        Part { head: "When it misleads", text: about.misleads },
    ];
    Topic { name: about.name.to_owned(), kind, summary: about.what, parts, sources: &[] }
}

fn explained(name: &str, kind: &'static str, explanation: Explanation) -> Topic {
    let parts = vec![
        Part { head: "How it is used", text: explanation.how },
        Part { head: "What the kernel or the CPU does", text: explanation.kernel },
        Part { head: "Limits", text: explanation.limits },
    ];
    Topic { name: name.to_owned(), kind, summary: explanation.summary, parts, sources: explanation.sources }
}

/// Runs `doorbell explain`.
pub fn run(args: Args, _: &Terminal) -> anyhow::Result<Exit> {
    let topics: Vec<Topic> = REGISTRIES.iter().flat_map(|registry| registry()).collect();
    let found = composed(&args.name, &topics);
    let mut out = Out::new();
    match &found[..] {
        [] => return Err(Usage(unknown(&args.name, &topics)).into()),
        [topic] if args.json => writeln!(out, "{}", pretty_json(topic)?)?,
        several if args.json => writeln!(out, "{}", pretty_json(&several)?)?,
        found => {
            let texts: Vec<String> = found.iter().map(|topic| text(topic, &Style::of_stdout())).collect();
            out.write_all(texts.join("\n").as_bytes())?;
        }
    }
    Ok(Exit::Done)
}

/// What the head of a column means: the whole, without its unit if it
/// has one, or both of its parts (`futex p50`).
fn composed<'topics>(name: &str, topics: &'topics [Topic]) -> Vec<&'topics Topic> {
    let bare = name.rsplit_once(", ").map_or(name, |(bare, _unit)| bare);
    let whole = [name, bare].map(|name| find(name, topics)).into_iter().find(|found| !found.is_empty());
    let parts = || {
        let split = |(blank, _)| [&bare[..blank], &bare[blank + 1..]].map(|part| find(part, topics));
        bare.match_indices(' ').map(split).find(|parts| parts.iter().all(|found| !found.is_empty()))
    };
    whole.unwrap_or_else(|| parts().map_or_else(Vec::new, |parts| parts.concat()))
}

/// By its name; in whatever letters and with blanks, as the head of a column has it.
fn find<'topics>(name: &str, topics: &'topics [Topic]) -> Vec<&'topics Topic> {
    let exact: Vec<_> = topics.iter().filter(|topic| topic.name == name).collect();
    let alike = || topics.iter().filter(|topic| key(&topic.name) == key(name)).collect();
    if exact.is_empty() { alike() } else { exact }
}

fn unknown(name: &str, topics: &[Topic]) -> String {
    let nearest = nearest(name, topics.iter().map(|topic| topic.name.as_str()));
    format!(
        "nothing is called '{name}'{} (`doorbell list` shows mechanisms and operations; any name \
         in a result's tables and warnings has an explanation too)",
        did_you_mean(nearest)
    )
}

fn text(topic: &Topic, style: &Style) -> String {
    let mut out = format!("{} ({})\n", style.paint(Role::Heading, &topic.name), topic.kind);
    out.push_str(&style.wrap(topic.summary, 4));
    for part in &topic.parts {
        out.push_str(&format!("\n{}\n", style.paint(Role::Heading, part.head)));
        out.push_str(&style.wrap(part.text, 4));
    }
    if !topic.sources.is_empty() {
        out.push_str(&format!("\n{}\n", style.paint(Role::Heading, "Sources")));
        topic.sources.iter().for_each(|source| out.push_str(&style.wrap(source, 4)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_report::axis::Axis;
    use doorbell_results::record::verdict::Status;
    use doorbell_verdict::claims::Decision;
    use doorbell_verdict::claims::ledger::Standing;

    #[test]
    fn every_name_has_an_explanation_and_all_but_a_few_mean_one_thing() {
        let topics: Vec<Topic> = REGISTRIES.iter().flat_map(|registry| registry()).collect();
        let mut names: Vec<&str> = topics.iter().map(|topic| topic.name.as_str()).collect();
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        // A need and a column, findings and causes: of these both are told.
        assert_eq!(twice, ["count", "interrupts", "steal"]);
        for topic in &topics {
            assert!(!topic.summary.is_empty(), "{}", topic.name);
            for part in &topic.parts {
                let sentence = part.text.ends_with('.') || ["Sources", "Cure"].contains(&part.head);
                assert!(sentence, "{}, {}: {}", topic.name, part.head, part.text);
            }
        }
    }

    /// The heads that tables are made with, read from the files that
    /// make them: whoever adds a column explains it.
    #[test]
    fn every_head_of_every_table_has_an_explanation() {
        let topics: Vec<Topic> = REGISTRIES.iter().flat_map(|registry| registry()).collect();
        let mut heads: Vec<(String, String)> =
            Axis::all().map(|axis| ("axis".into(), axis.name().into())).collect();
        let mut folders = vec![
            format!("{}/../report/src", env!("CARGO_MANIFEST_DIR")),
            format!("{}/src/cli", env!("CARGO_MANIFEST_DIR")),
        ];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path().to_str().unwrap().to_owned();
                if std::path::Path::new(&path).is_dir() {
                    folders.push(path);
                } else if path.ends_with(".rs")
                    && !["long_table.rs", "explain.rs", "tests.rs"].iter().any(|other| path.ends_with(other))
                {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let text = text.split("#[cfg(test)]").next().unwrap();
                    for opening in ["number(\"", "word(\"", "words(\"", "Column::new(\""] {
                        let found = text.split(opening).skip(1).filter_map(|rest| rest.split_once('"'));
                        heads.extend(found.map(|(head, _)| (path.clone(), head.replace("\\\\", "\\"))));
                    }
                }
            }
        }
        assert!(heads.len() > 150, "{} heads were found", heads.len());
        let explained = |head: &str| !composed(head, &topics).is_empty();
        let unknown: Vec<_> = heads
            .iter()
            .filter(|(_, head)| !head.is_empty() && !head.contains('{') && !explained(head))
            .collect();
        assert!(unknown.is_empty(), "{unknown:#?}");
        for relation in doorbell_results::machine::topology::Relation::ALL {
            assert!(!find(relation.name(), &topics).is_empty(), "{}", relation.name());
        }
        // Nothing was called `gpu`, of which the ways alone were explained.
        for name in [
            "gpu",
            "p50",
            "p99.9",
            "CPU",
            "gap",
            "block",
            "same L3",
            "unpinned",
            "primitive cost",
            "configuration",
        ] {
            assert!(explained(name), "{name}");
        }
    }

    #[test]
    fn every_stage_every_cause_and_every_verdict_has_an_explanation() {
        let topics: Vec<Topic> = REGISTRIES.iter().flat_map(|registry| registry()).collect();
        let kinds = |name: &str| composed(name, &topics).iter().map(|topic| topic.kind).collect::<Vec<_>>();
        for mark in Mark::ALL {
            assert_eq!(kinds(mark.stage()), ["stage"], "{mark:?}");
        }
        for cause in &cause::ALL {
            assert!(kinds(cause.about.name).contains(&"cause"), "{}", cause.about.name);
        }
        assert_eq!(kinds("steal"), ["finding", "cause"]);
        let statuses =
            [Status::Answered, Status::Passed, Status::Failed, Status::Inconclusive].map(Status::name);
        let decisions =
            [Decision::Confirmed, Decision::Contradicted, Decision::CannotTell].map(Decision::name);
        let standings =
            [Standing::Open, Standing::Confirmed, Standing::Contradicted, Standing::Both].map(Standing::name);
        let judged = ["slower", "faster", "same", "least", "pass", "fail", "kept", "broken", "unknown"];
        for word in statuses.iter().chain(&decisions).chain(&standings).chain(&judged) {
            assert_eq!(kinds(word), ["verdict"], "{word}");
        }
    }

    #[test]
    fn every_mechanism_and_every_operation_names_its_sources() {
        let topics = mechanisms().into_iter().chain(operations()).chain(kinds_of_task()).chain(io_engines());
        topics.for_each(|topic| assert!(!topic.sources.is_empty(), "{}", topic.name));
    }

    #[test]
    fn what_a_result_names_has_an_explanation() {
        let topics: Vec<Topic> = REGISTRIES.iter().flat_map(|registry| registry()).collect();
        let names = [
            "interference",
            "bimodal",
            "primitive-costs-drifted",
            "below-primitive-cost",
            "never-slept",
            "idle-states",
            "late",
        ];
        for name in names {
            assert!(topics.iter().any(|topic| topic.name == name), "{name}");
        }
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_one() {
        let topics = mechanisms();
        assert!(unknown("futx", &topics).contains("'futex'"));
    }
}
