// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell study`.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::common::{Exit, RUN, Terminal, command_line};
use super::experiment::Experiment;
use super::out;
use super::ping;
use super::usage::Usage;
use crate::experiment::ping::makes_sense;
use crate::experiment::subject::subject;
use doorbell_report::style::Style;
use doorbell_report::wording::EMULATED;
use doorbell_results::quantity::percent;
use doorbell_results::record::{ResultFile, write};
use doorbell_verdict::compare::{RELEVANT, compare};
use doorbell_verdict::study::{Round, STUDY_VERSION, Study};

/// A study's file is longer than this only if it is none: a finding takes some 200 bytes.
const LONGEST_STUDY: u64 = 64 << 20;

/// Arguments of `doorbell study`.
// Its group would have the name of the flattened arguments', which clap does not allow.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(after_help = "EXAMPLES\n  \
    doorbell study futex eventfd pipe --gap 0 --rounds 5\n  \
    doorbell study futex --gap 0 --rounds 5 --file study.json    adds five rounds to what the file has")]
pub struct Args {
    /// Rounds of three runs each
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = RUN)]
    rounds: u32,
    /// The slowdown put in on purpose
    #[arg(long, value_parser = percent, value_name = "PERCENT", default_value = "5%", help_heading = RUN)]
    slowdown: u32,
    /// A file that keeps the findings; rounds are added to those it has
    #[arg(long, value_name = "FILE", help_heading = RUN)]
    file: Option<PathBuf>,
    /// A folder that keeps the result of every run
    #[arg(long, value_name = "FOLDER", help_heading = RUN)]
    keep: Option<PathBuf>,
    #[command(flatten)]
    ping: ping::Args,
}

/// Runs `doorbell study`.
pub fn run(args: Args, terminal: &Terminal) -> anyhow::Result<Exit> {
    let machine = args.ping.run.machine()?;
    if args.ping.inject_slowdown.is_some() {
        return Err(Usage("the study slows every third run by itself: `--slowdown`".to_owned()).into());
    }
    // Only what can be slowed has a place in it; the harness itself has no waiter to be.
    let mut slow = args.ping.clone();
    slow.inject_slowdown = Some(args.slowdown);
    let mut slowed = slow.planned(&machine)?;
    slowed
        .configurations
        .iter_mut()
        .for_each(|configuration| configuration.injected_slowdown_ppm = Some(args.slowdown));
    let one_cpu = machine.topology.usable.len() == 1;
    slowed.configurations.retain(|configuration| makes_sense(configuration, one_cpu));
    slowed.configurations.retain(|configuration| !subject(configuration).is_harness());
    let mut plan = slowed.clone();
    plan.configurations.iter_mut().for_each(|configuration| configuration.injected_slowdown_ppm = None);
    let fresh = Study {
        study_version: STUDY_VERSION,
        command_line: command_line(),
        slowdown_ppm: args.slowdown,
        blocks: plan.blocks,
        configurations: plan.configurations.clone(),
        rounds: Vec::new(),
    };
    let mut study = match &args.file {
        Some(path) if path.exists() => continued(path, fresh)?,
        _ => fresh,
    };
    let mut exit = Exit::Done;
    for round in 0..args.rounds {
        let mut runs: Vec<ResultFile> = Vec::new();
        for (name, plan) in [("first", &plan), ("again", &plan), ("slowed", &slowed)] {
            let mut plan = plan.clone();
            // Each run has an order of its own, as two runs of a user have.
            plan.seed = plan.seed.wrapping_add(u64::from(round) * 3 + runs.len() as u64);
            let result = args.ping.run.measure(plan, machine.clone(), terminal)?;
            if let Some(folder) = &args.keep {
                doorbell_files::folder(folder)?;
                write::write(&result, &folder.join(format!("{}-{name}.json", result.started_at_unix_ns)))?;
            }
            match Exit::of_run(&result) {
                Exit::Done => {}
                Exit::Interrupted => {
                    exit = Exit::Interrupted;
                    break;
                }
                // What was measured still counts.
                failed => exit = failed,
            }
            runs.push(result);
        }
        let [first, again, last] = &runs[..] else { break };
        let same = study.findings(&compare(first, again, RELEVANT));
        let slowed = study.findings(&compare(again, last, RELEVANT));
        study.rounds.push(Round { same, slowed });
        if let Some(path) = &args.file {
            let text = serde_json::to_string(&study)?;
            doorbell_files::put(path, text.as_bytes())
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    if machine.virtualisation.emulated {
        out::say(&format!("{EMULATED}\n"));
    }
    out::say(&doorbell_report::study::study(&study, &Style::of_stdout()));
    Ok(exit)
}

fn bounded(path: &Path) -> anyhow::Result<Vec<u8>> {
    doorbell_files::bytes(path, LONGEST_STUDY).with_context(|| format!("cannot read {}", path.display()))
}

/// The study in the file at `path`, if it is of the same runs as `fresh`.
fn continued(path: &Path, fresh: Study) -> anyhow::Result<Study> {
    let text = bounded(path)?;
    let old: Study = serde_json::from_slice(&text)
        .with_context(|| format!("{} is not a study; name another file", path.display()))?;
    let same = (old.study_version, old.slowdown_ppm, old.blocks, &old.configurations)
        == (fresh.study_version, fresh.slowdown_ppm, fresh.blocks, &fresh.configurations);
    if !same {
        let message = format!("{} is of other runs; name another file or give its arguments", path.display());
        return Err(Usage(message).into());
    }
    Ok(Study { rounds: old.rounds, ..fresh })
}
