// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell fleet report`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::super::common::{Exit, Terminal};
use super::super::out::{self, aside};
use super::super::report::source;
use super::results::{each, files, judge, latest_begin};
use super::verdict::names;
use doorbell_report::fleet::to_look_at;
use doorbell_report::html::{fleet, report};
use doorbell_report::judgement::answered;
use doorbell_report::wording::counted;
use doorbell_verdict::fleet::{Fleet, Runs};

/// Arguments of `doorbell fleet report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXIT STATUS\n  \
    0  every file is on the page\n  1  a file could not be read, and is named there")]
pub struct Args {
    /// Results, or folders of them
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The folder of the pages; index.html is the fleet's
    #[arg(long, short, value_name = "FOLDER")]
    output: PathBuf,
    /// A file with the names of the nodes that were asked, one a line; -: standard input
    #[arg(long, value_name = "FILE")]
    nodes: Option<PathBuf>,
    /// A page of every node, not only of those that fail, are
    /// inconclusive or odd: some hundred kB each
    #[arg(long)]
    all: bool,
}

/// Reads each result, one in memory at a time; those of the nodes that get a page a second time.
pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Exit> {
    let latest = latest_begin();
    let (mut judging, mut runs) = (Fleet::begun_by(latest), Runs::begun_by(latest));
    // Where each run is, by its node and when it began.
    let mut at: HashMap<(String, u64), PathBuf> = HashMap::new();
    if let Some(file) = &args.nodes {
        judging.ask(names(file)?);
    }
    let left_out = each(&files(&args.paths)?, |file, result| {
        let node = match runs.node(result) {
            Ok(node) => node,
            Err(refused) => return Ok(Err(refused.to_string())),
        };
        judge(result);
        at.insert((node, result.started_at_unix_ns), file.to_owned());
        Ok(judging.add(result).map_err(|refused| refused.to_string()))
    })?;
    let judged = judging.judge();
    let own: Vec<usize> = if args.all { (0..judged.nodes.len()).collect() } else { to_look_at(&judged) };
    // A node's name may be no name of a file.
    let page = |place: usize| format!("node-{place}.html");
    let folder = doorbell_files::folder(&args.output).with_context(|| args.output.display().to_string())?;
    let write = |name: &str, text: &str| out::put(&folder.join(name), |out| out.write_all(text.as_bytes()));
    for &place in &own {
        let node = &judged.nodes[place];
        let Some(file) = at.get(&(node.name.clone(), node.started_at_unix_ns)) else { continue };
        write(&page(place), &of_a_node(file)?)?;
    }
    let text = fleet::page(&judged, &left_out, |place| own.contains(&place).then(|| page(place)))?;
    write("index.html", &text)?;
    if !terminal.quiet {
        let index = args.output.join("index.html");
        let pages = counted(own.len() as u64, "page");
        aside!("Wrote {}, and {pages} of nodes beside it.", index.display());
    }
    Ok(if left_out.is_empty() { Exit::Done } else { Exit::Failed })
}

fn of_a_node(file: &Path) -> anyhow::Result<String> {
    let mut source = source(file)?;
    source.verdict = answered(&source.result, &[&source.result]);
    Ok(report(&[source])?)
}
