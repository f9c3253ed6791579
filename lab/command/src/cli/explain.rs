// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell explain NAME`: what a name that stands in a table, a result file or a warning means.

use std::io::Write;

use serde::Serialize;

use super::common::{Exit, Terminal};
use super::out::Out;
use super::usage::refuse;
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

/// Everything that is explained; the one list to extend.
fn topics() -> Vec<Topic> {
    let mut all: Vec<Topic> = Vec::new();
    let mechanisms = mechanism::all().iter();
    all.extend(mechanisms.map(|entry| explained(entry.name(), "mechanism", entry.explanation())));
    let operations = operation::all().iter();
    all.extend(operations.map(|one| explained(one.name, "operation", one.explanation)));
    all.extend(task::all().iter().map(|kind| explained(kind.name, "kind of task", kind.explanation)));
    let engines = transfer::all().iter();
    all.extend(engines.map(|engine| explained(engine.name, "I/O engine", engine.explanation)));
    all.extend(gpu_ways());
    // What only `doorbell fanout` has: the rest are mechanisms.
    let fan_outs = fan::all().iter().filter(|entry| mechanism::find(entry.name).is_err());
    all.extend(fan_outs.map(|entry| plain(entry.name, "fan-out", entry.summary)));
    all.extend(load::all().iter().map(|kind| plain(kind.name, "load", kind.about)));
    all.extend(Quantity::ALL.iter().map(|one| plain(one.name(), "figure", one.definition())));
    all.extend(IRREGULARITIES.iter().map(|one| plain(&one.name.replace(' ', "-"), "count", one.meaning)));
    all.extend(PRIMITIVES.iter().map(|about| told("primitive cost", *about)));
    all.extend(warning::ALL.iter().map(|about| told("warning", *about)));
    all.extend(plausibility::rules().map(|about| told("rule", about)));
    all.extend(doctor::families().map(|(about, source)| told("finding", about).and("Sources", source)));
    // What `doorbell anatomy` cuts a wake-up into.
    let stages = Mark::ALL.iter();
    all.extend(stages.map(|one| plain(one.stage(), "stage", one.meaning()).and("Sources", one.source())));
    // What `doorbell why` finds.
    all.extend(cause::ALL.iter().map(|cause| told("cause", cause.about).and("Cure", cause.cure)));
    // What `doorbell pick` asks a mechanism for.
    all.extend(need::NEEDS.iter().map(|need| plain(need.name, "need", need.meaning)));
    // Heads of columns, placements, percentiles, verdicts and parts of a run; most of what has the
    // name of something above is explained there.
    all.extend(terms::terms().map(|[kind, name, meaning]| plain(name, kind, meaning)));
    all
}

fn gpu_ways() -> impl Iterator<Item = Topic> {
    let measured =
        |topic: Topic| Topic { sources: gpu::SOURCES, ..topic.and("How it is measured", gpu::MEASURED) };
    let all = plain(
        "gpu",
        "verb",
        "What a wake-up between CPU and GPU costs, by every way to wait for a kernel and to \
         start one. `doorbell list` shows the ways; each is explained by its name.",
    );
    let way = |way: &gpu::Way| {
        let topic = plain(way.name, "way to wait for a GPU", way.summary);
        topic.and("What is called, and who wakes", way.calls).and("What it costs", way.costs)
    };
    std::iter::once(all).chain(gpu::all().iter().map(way)).map(measured)
}

impl Topic {
    fn and(mut self, head: &'static str, text: &'static str) -> Self {
        self.parts.push(Part { head, text });
        self
    }
}

fn plain(name: &str, kind: &'static str, summary: &'static str) -> Topic {
    Topic { name: name.to_owned(), kind, summary, parts: Vec::new(), sources: &[] }
}

fn told(kind: &'static str, about: About) -> Topic {
    let topic = plain(about.name, kind, about.what);
    topic.and("How it is found", about.taken).and("When it misleads", about.misleads)
}

fn explained(name: &str, kind: &'static str, explanation: Explanation) -> Topic {
    let topic = plain(name, kind, explanation.summary)
        .and("How it is used", explanation.how)
        .and("What the kernel or the CPU does", explanation.kernel)
        .and("Limits", explanation.limits);
    Topic { sources: explanation.sources, ..topic }
}

/// Runs `doorbell explain`.
pub fn run(args: Args, _: &Terminal) -> anyhow::Result<Exit> {
    let topics = topics();
    let found = composed(&args.name, &topics);
    let mut out = Out::new();
    match &found[..] {
        [] => return refuse(unknown(&args.name, &topics)),
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
        let topics = topics();
        let mut names: Vec<&str> = topics.iter().map(|topic| topic.name.as_str()).collect();
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        // A need and a column, findings and causes: of these both are told.
        assert_eq!(twice, ["count", "interrupts", "steal"]);
        for topic in &topics {
            assert!(!topic.summary.is_empty(), "{}", topic.name);
            let named = ["mechanism", "operation", "kind of task", "I/O engine"];
            assert!(!named.contains(&topic.kind) || !topic.sources.is_empty(), "{}", topic.name);
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
        let topics = topics();
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
        for name in "gpu|p50|p99.9|CPU|gap|block|same L3|unpinned|primitive cost|configuration".split('|') {
            assert!(explained(name), "{name}");
        }
    }

    #[test]
    fn every_stage_every_cause_and_every_verdict_has_an_explanation() {
        let topics = topics();
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
    fn what_a_result_names_has_an_explanation_and_an_unknown_name_gets_the_nearest_one() {
        let topics = topics();
        let names =
            "interference bimodal primitive-costs-drifted below-primitive-cost never-slept idle-states late";
        for name in names.split(' ') {
            assert!(topics.iter().any(|topic| topic.name == name), "{name}");
        }
        assert!(unknown("futx", &topics).contains("'futex'"));
    }
}
