// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell claims`.

use std::path::PathBuf;

use super::common::{Exit, Terminal};
use super::fleet::results::{each, files};
use super::out;
use doorbell_report::claims::{ledger, ledger_json};
use doorbell_report::style::Style;
use doorbell_results::written::pretty_json;
use doorbell_verdict::claims::ledger::Ledger;

/// Arguments of `doorbell claims`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell claims                      every claim, and the one command that measures what it speaks of\n  \
    doorbell claims sent-back/ --open    what is still open after these results, and why\n\n\
    A claim is settled by a machine: where some confirm and others contradict it, both are named.\n\n\
    EXIT STATUS\n  \
    0  every file was read  1  some are no result, or the same run again, or speak to no claim: they are named")]
pub struct Args {
    /// Results, or folders of them
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only the claims that none of them settles
    #[arg(long)]
    open: bool,
    /// All of it as JSON
    #[arg(long)]
    json: bool,
}

/// Reads the results one at a time, and says how each claim stands.
pub fn run(args: Args, _: &Terminal) -> anyhow::Result<Exit> {
    let mut claims = Ledger::default();
    let left_out =
        each(&files(&args.paths)?, |path, result| Ok(claims.add(&path.display().to_string(), result)))?;
    let text = if args.json {
        format!("{}\n", pretty_json(&ledger_json(&claims, args.open, &left_out))?)
    } else {
        ledger(&claims, args.open, &left_out, &Style::of_stdout())
    };
    out::say(&text);
    Ok(if left_out.is_empty() { Exit::Done } else { Exit::Failed })
}
