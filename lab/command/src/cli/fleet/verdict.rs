// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell fleet verdict`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::super::common::Exit;
use super::super::out;
use super::super::usage::refuse;
use super::super::verdict::Form;
use super::results::{each, files, judge, latest_begin};
use doorbell_report::fleet::{standing, subsections, verdict};
use doorbell_report::style::Style;
use doorbell_report::subsection;
use doorbell_results::record::ResultFile;
use doorbell_results::record::verdict::Status;
use doorbell_verdict::fleet::Fleet;

/// Rows of the table without `--details`.
const ROWS: usize = 12;

/// Arguments of `doorbell fleet verdict`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXIT STATUS\n  \
    0  no node fails, and every file was read\n  3  a node fails\n  1  none does, and a file could not be read\n  4  a node's verdict is inconclusive, or it gave none\n\n\
    Of each thing that a node was asked the newest result counts; the worst of them stands for it. A node is odd where most of its figures lie too far from those of its type for chance.")]
pub struct Args {
    /// Results, or folders of them
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// A file with the names of the nodes that were asked, one a line; -: standard input. Results
    /// of others are named and not counted
    #[arg(long, value_name = "FILE")]
    nodes: Option<PathBuf>,
    /// Every node that is named, and every file that was left out
    #[arg(long)]
    details: bool,
    #[command(flatten)]
    form: Form,
}

/// Reads, judges, tells.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut fleet = Fleet::begun_by(latest_begin());
    let asked = args.nodes.as_deref().map_or(Ok(Vec::new()), names)?;
    if args.nodes.is_some() {
        fleet.ask(asked.clone());
    }
    let left_out = each(&files(&args.paths)?, |file, result| {
        judge(result);
        Ok(of_its_node(file, result, &asked)
            .and_then(|()| fleet.add(result).map_err(|refused| refused.to_string())))
    })?;
    let judged = fleet.judge();
    let style = Style::of_stdout();
    let told = || subsections(&judged, &left_out);
    let text = match args.form.writer() {
        Some(write) => write("doorbell fleet verdict", &verdict(&judged, &left_out)),
        None if args.details => subsection::text(&told(), &style).trim_start_matches('\n').to_owned(),
        None => subsection::brief(&told(), ROWS, &style),
    };
    out::say(&text);
    Ok(match standing(&judged) {
        Status::Failed => Exit::Regression,
        _ if !left_out.is_empty() => Exit::Failed,
        Status::Inconclusive => Exit::Unfit,
        Status::Passed | Status::Answered => Exit::Done,
    })
}

/// Whether the file that a node's result was saved as, by whoever asked it, and the result itself
/// are of one node. A node could else speak for another, and be heard last.
fn of_its_node(file: &Path, result: &ResultFile, asked: &[String]) -> Result<(), String> {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let Some(node) = asked.iter().find(|node| *node == stem) else { return Ok(()) };
    match &result.name {
        Some(name) if name != node => {
            Err(format!("it was saved as the result of {node}, and says that it is of {name}"))
        }
        _ => Ok(()),
    }
}

/// The longest list of nodes that is read, bytes.
const LONGEST_LIST: u64 = 16 << 20;

/// The words of `file`. Where there are none, whatever was to write
/// them has failed: nobody asks no node.
pub(super) fn names(file: &Path) -> anyhow::Result<Vec<String>> {
    let text = doorbell_files::text(file, LONGEST_LIST).with_context(|| file.display().to_string())?;
    let names: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if names.is_empty() {
        return refuse(format!("--nodes {}: no node is named there", file.display()));
    }
    Ok(names)
}
