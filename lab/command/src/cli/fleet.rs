// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell fleet`.

pub mod plan;
pub mod report;
pub mod results;
pub mod verdict;

use std::ffi::OsString;

use super::common::{Exit, Terminal};
use super::out;
use super::usage::Usage;
use doorbell_results::nearest::{did_you_mean, nearest};

/// Arguments of `doorbell fleet`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell fleet plan slurm --nodes 40 -- gate --max 50us > gate.sbatch   then sbatch gate.sbatch\n  \
    doorbell fleet plan ssh node01 node02 -- gate --max 50us | sh\n  \
    doorbell fleet verdict results\n  \
    doorbell fleet report results -o fleet        fleet/index.html: every node on one page")]
pub struct Args {
    #[command(subcommand)]
    step: Step,
}

#[derive(Debug, clap::Subcommand)]
enum Step {
    /// Print what runs a verb on every node: a result a node, named after it
    Plan(plan::Args),
    /// Say which nodes fail, which are odd beside others of their type, and what those share
    Verdict(verdict::Args),
    /// Draw a page with a square for each node, and a page of each node to look at
    Report(report::Args),
    // Results without a step before them, or one that there is none of.
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// What was meant by `words`, which begin with no step.
fn step_of(words: &[OsString]) -> Usage {
    let first = words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let steps = ["plan", "verdict", "report"];
    Usage(match nearest(&first, steps) {
        Some(near) => format!("fleet has no step '{first}'{}", did_you_mean(Some(near))),
        None => format!(
            "fleet takes a step before '{first}': `doorbell fleet verdict {first}` says which \
             nodes fail or are odd, `fleet report` draws them on a page"
        ),
    })
}

/// Runs `doorbell fleet`.
pub fn run(args: Args, terminal: &Terminal) -> anyhow::Result<Exit> {
    match args.step {
        Step::Plan(args) => {
            out::say(&plan::plan(&args)?);
            Ok(Exit::Done)
        }
        Step::Verdict(args) => verdict::run(&args),
        Step::Report(args) => report::run(&args, terminal),
        Step::Other(words) => Err(step_of(&words).into()),
    }
}
