// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell explain NAME`: what a name that stands in a table, a result file or a warning means.

use std::io::Write;

use serde::Serialize;

use super::common::{Exit, Usage};
use crate::mechanism::{self, Explanation};
use crate::nearest::nearest;
use crate::operation;
use crate::record::series::Quantity;
use crate::view::style::{Role, Style};

/// Arguments of `doorbell explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A mechanism or an operation (`doorbell list` shows them), or the name of a figure such as `round-trip`
    name: String,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Something with a name that has an explanation.
#[derive(Debug, Serialize)]
struct Topic {
    name: String,
    /// What it is: `mechanism`, `operation`, `figure`.
    kind: &'static str,
    summary: &'static str,
    /// Headed paragraphs.
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
const REGISTRIES: &[fn() -> Vec<Topic>] = &[mechanisms, operations, figures];

fn mechanisms() -> Vec<Topic> {
    let entries = mechanism::all().iter();
    entries.map(|entry| explained(entry.name(), "mechanism", entry.explanation())).collect()
}

fn operations() -> Vec<Topic> {
    let operations = operation::all().iter();
    operations.map(|operation| explained(operation.name(), "operation", operation.explanation())).collect()
}

fn figures() -> Vec<Topic> {
    let figures = Quantity::ALL.iter().map(|quantity| Topic {
        // As result files spell it.
        name: serde_plain(quantity),
        kind: "figure",
        summary: quantity.definition(),
        parts: Vec::new(),
        sources: &[],
    });
    figures.collect()
}

/// The name under which a unit variant is serialised.
fn serde_plain(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| Some(value.as_str()?.to_owned())).unwrap_or_default()
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
pub fn run(args: Args) -> anyhow::Result<Exit> {
    let topics: Vec<Topic> = REGISTRIES.iter().flat_map(|registry| registry()).collect();
    let Some(topic) = topics.iter().find(|topic| topic.name == args.name) else {
        return Err(Usage(unknown(&args.name, &topics)).into());
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(topic)?)?;
    } else {
        out.write_all(text(topic, &Style::of_stdout()).as_bytes())?;
    }
    Ok(Exit::Done)
}

fn unknown(name: &str, topics: &[Topic]) -> String {
    let nearest = nearest(name, topics.iter().map(|topic| topic.name.as_str()));
    let nearest = nearest.map(|nearest| format!("; did you mean '{nearest}'?")).unwrap_or_default();
    format!("nothing is called '{name}'{nearest} (`doorbell list` shows mechanisms and operations)")
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

    #[test]
    fn every_name_means_one_thing_and_has_an_explanation() {
        let topics: Vec<Topic> = REGISTRIES.iter().flat_map(|registry| registry()).collect();
        let mut names: Vec<&str> = topics.iter().map(|topic| topic.name.as_str()).collect();
        names.sort_unstable();
        names.windows(2).for_each(|pair| assert_ne!(pair[0], pair[1]));
        for topic in &topics {
            assert!(!topic.summary.is_empty(), "{}", topic.name);
            for part in &topic.parts {
                assert!(part.text.ends_with('.'), "{}, {}: {}", topic.name, part.head, part.text);
            }
        }
    }

    #[test]
    fn every_mechanism_and_every_operation_names_its_sources() {
        let topics = mechanisms().into_iter().chain(operations());
        topics.for_each(|topic| assert!(!topic.sources.is_empty(), "{}", topic.name));
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_one() {
        let topics = mechanisms();
        assert!(unknown("futx", &topics).contains("'futex'"));
    }
}
