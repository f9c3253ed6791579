// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell doctor`: is this machine fit to measure?

use super::common::{Exit, Terminal, machine_here};
use super::out;
use doorbell_report::doctor::{Detail, doctor};
use doorbell_report::style::Style;
use doorbell_results::machine::doctor::{Severity, worst};
use doorbell_results::written::pretty_json;

/// Arguments of `doorbell doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell doctor                  every finding, with its effect and the cure\n  \
    doorbell doctor --brief          one line for each finding that is not ok\n  \
    doorbell doctor --json | jq '.findings[] | select(.severity != \"ok\")'\n\n\
    Exit status 4 where a finding makes the machine unfit to measure.")]
pub struct Args {
    /// Only what is not as it should be, a line each
    #[arg(long, conflicts_with = "json")]
    brief: bool,
    /// The whole machine with its findings, as a result file holds them
    #[arg(long)]
    json: bool,
}

/// Examines the machine and prints what was found.
pub fn run(args: Args, _: &Terminal) -> anyhow::Result<Exit> {
    let machine = machine_here();
    let text = if args.json {
        pretty_json(&machine)? + "\n"
    } else {
        doctor(&machine, if args.brief { Detail::Brief } else { Detail::Full }, &Style::of_stdout())
    };
    out::say(&text);
    Ok(if worst(&machine.findings) == Severity::Unfit { Exit::Unfit } else { Exit::Done })
}
