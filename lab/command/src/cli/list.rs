// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell list`: what can be measured, and what this machine lacks.

use std::io::Write;

use serde::Serialize;

use super::common::{Exit, Terminal};
use super::out::Out;
use doorbell_report::style::{Role, Style};
use doorbell_report::table::{Table, word};
use doorbell_results::record::need::NEEDS;
use doorbell_results::written::pretty_json;
use doorbell_subjects::mechanism::{self, Contexts, Unavailable};
use doorbell_subjects::{
    gpu, operation,
    task::{self, MadeOf},
    transfer,
};

/// Arguments of `doorbell list`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Everything that can be named on the command line.
#[derive(Debug, Serialize)]
struct Listing {
    mechanisms: Vec<Item>,
    /// None on systems where none is to be had.
    operations: Vec<Item>,
    kinds_of_task: Vec<Item>,
    io_engines: Vec<Item>,
    gpu_ways: Vec<Item>,
}

/// A mechanism or an operation, as this machine has it.
#[derive(Debug, Serialize)]
struct Item {
    name: &'static str,
    summary: &'static str,
    available: bool,
    /// What is lacking, when it is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    processes: bool,
    threads: bool,
    /// The needs that a mechanism serves, as `doorbell pick --need` names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    serves: Vec<&'static str>,
}

impl Item {
    fn new(
        name: &'static str,
        summary: &'static str,
        available: Result<(), Unavailable>,
        joins: impl Fn(Contexts) -> bool,
    ) -> Self {
        Self {
            name,
            summary,
            available: available.is_ok(),
            reason: available.err().map(|unavailable| unavailable.reason),
            processes: joins(Contexts::Processes),
            threads: joins(Contexts::Threads),
            serves: Vec::new(),
        }
    }

    fn joins(&self) -> &'static str {
        match (self.processes, self.threads) {
            (true, true) => "processes, threads",
            (true, false) => "processes",
            (false, true) => "threads",
            (false, false) => "",
        }
    }
}

/// Runs `doorbell list`.
pub fn run(args: Args, _: &Terminal) -> anyhow::Result<Exit> {
    let listing = Listing {
        mechanisms: mechanism::all()
            .iter()
            .map(|entry| {
                let summary = entry.explanation().summary;
                let served = NEEDS.iter().filter(|need| (need.served)(&entry.notification()));
                Item {
                    serves: served.map(|need| need.name).collect(),
                    ..Item::new(entry.name(), summary, entry.available(), |sides| {
                        entry.notification().joins(sides)
                    })
                }
            })
            .collect(),
        operations: operation::all()
            .iter()
            .map(|operation| {
                let summary = operation.explanation.summary;
                Item::new(operation.name, summary, (operation.available)(), |sides| operation.joins(sides))
            })
            .collect(),
        kinds_of_task: task::all()
            .iter()
            .map(|kind| {
                let summary = kind.explanation.summary;
                Item::new(kind.name, summary, (kind.available)(), |contexts| {
                    (kind.made_of == MadeOf::Processes) == (contexts == Contexts::Processes)
                })
            })
            .collect(),
        io_engines: transfer::all()
            .iter()
            .map(|engine| {
                let summary = engine.explanation.summary;
                Item::new(engine.name, summary, (engine.available)(), |contexts| {
                    contexts == Contexts::Processes
                })
            })
            .collect(),
        gpu_ways: {
            let here = gpu::device().map(drop).map_err(Unavailable::because);
            let item = |way: &'static gpu::Way| Item::new(way.name, way.summary, here.clone(), |_| false);
            gpu::all().iter().map(item).collect()
        },
    };
    let mut out = Out::new();
    if args.json {
        writeln!(out, "{}", pretty_json(&listing)?)?;
    } else {
        out.write_all(text(&listing, &Style::of_stdout()).as_bytes())?;
    }
    Ok(Exit::Done)
}

fn text(listing: &Listing, style: &Style) -> String {
    let mut out = String::new();
    for (head, items) in [
        ("mechanism (ping, pairs)", &listing.mechanisms),
        ("operation (switch)", &listing.operations),
        ("kind of task (tasks)", &listing.kinds_of_task),
        ("I/O engine (io)", &listing.io_engines),
        ("way to wait for a GPU (gpu)", &listing.gpu_ways),
    ] {
        if items.is_empty() {
            continue;
        }
        let mut table =
            Table::new(vec![word(head), word("here"), word("joins").keep(1), word("what it is").keep(2)]);
        for item in items {
            let here = if item.available { "yes" } else { "no" };
            table.row(vec![item.name.into(), here.into(), item.joins().into(), item.summary.into()]);
        }
        out.push_str(&table.render(style));
        out.push('\n');
    }
    let lacking = listing.mechanisms.iter().chain(&listing.operations).chain(&listing.kinds_of_task);
    let lacking = lacking.chain(&listing.io_engines);
    // All ways to wait for a GPU lack the same.
    let lacking = lacking.chain(listing.gpu_ways.first());
    for item in lacking.filter(|item| !item.available) {
        out.push_str(&style.paint(Role::Heading, &format!("{} is not here:", item.name)));
        out.push('\n');
        out.push_str(&style.wrap(item.reason.as_deref().unwrap_or_default(), 4));
    }
    out.push_str("`doorbell explain NAME` says how each works, what the kernel does, and its limits.\n");
    out
}
