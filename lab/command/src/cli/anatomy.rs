// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell anatomy`.

use std::time::Duration;

use super::common::{Exit, RunArgs, Terminal};
use super::experiment::Experiment;
pub use super::experiment::run;
use super::offered;
use super::out::aside;
use super::ping::mechanisms;
use super::placements::PlacementArgs;
use super::sides::contexts;
use crate::experiment::anatomy::{BLOCKS, GAPS, MESSAGE, WINDOW, plan};
use crate::experiment::ping::Ping;
use doorbell_harness::trace::{Tracefs, instance};
use doorbell_results::configuration::{Pattern, Timing, Until, WaitPolicy};
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_results::quantity::{gap, span, wait_policy};
use doorbell_subjects::mechanism::Contexts;

/// Arguments of `doorbell anatomy`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell anatomy                                  a futex wake-up on every placement, after short and long sleeps\n  \
    doorbell anatomy futex eventfd pipe --placement same-l3 --gap 10us,1ms\n  \
    doorbell anatomy futex --cpus 0,1 --load full     the same while the machine is busy\n  \
    doorbell anatomy futex -o a.json && doorbell report a.json -o a.html     waterfalls to look at\n\n\
    Needs the kernel's trace events: root, or a tracefs this user may write. The buffer is an instance of its own, so other\n  \
    tracers on the machine are left alone. Exit status 4 where there is none.")]
pub struct Args {
    /// Mechanisms (`doorbell list` shows them), or `all`
    #[arg(default_value = "futex", value_name = "MECHANISM", value_parser = offered::mechanisms(), hide_possible_values = true)]
    mechanisms: Vec<String>,
    /// Time between a wake-up and the next notification, comma separated [default: 10us,1ms]
    #[arg(long, value_delimiter = ',', value_parser = gap, value_name = "TIME")]
    gap: Vec<Duration>,
    /// How the waiter waits, comma separated: block, spin, spin-then-block=TIME, timeout=TIME
    #[arg(long, value_delimiter = ',', value_parser = wait_policy, default_value = "block", value_name = "POLICY")]
    wait: Vec<WaitPolicy>,
    /// Bytes of message in shared memory, written before the
    /// notification and read after the wake-up
    #[arg(long, default_value_t = MESSAGE, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(0..=(1 << 26)))]
    size: u32,
    /// What the two sides are, comma separated
    #[arg(long, value_parser = contexts(), value_delimiter = ',', default_value = "processes")]
    contexts: Vec<Contexts>,
    /// Wake-ups per trial, at most 10000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    count: Option<u64>,
    /// Length of a trial [default: 200ms]
    #[arg(long, value_parser = span, value_name = "TIME")]
    time: Option<Duration>,
    #[command(flatten)]
    placements: PlacementArgs,
    #[command(flatten)]
    run: RunArgs,
}

impl Experiment for Args {
    fn name(&self) -> &'static str {
        "anatomy"
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        from_flags(self, machine)
    }
    fn sections(&self) -> &'static [&'static str] {
        &["stages"]
    }
    fn run(self, terminal: &Terminal) -> anyhow::Result<Exit> {
        run_traced(&self, terminal)
    }
}

fn from_flags(args: &Args, machine: &Machine) -> anyhow::Result<Plan> {
    let gaps = if args.gap.is_empty() { GAPS.to_vec() } else { args.gap.clone() };
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let ping = Ping {
        mechanisms: mechanisms(&args.mechanisms)?,
        contexts: args.contexts.clone(),
        placements: args.placements.resolve(&machine.topology)?,
        one_cpu: machine.topology.usable.len() == 1,
        patterns: gaps.into_iter().map(|gap| Pattern::OneWay { gap_ns: ns(gap) }).collect(),
        timing: Some(Timing::Stamp),
        waits: args.wait.clone(),
        sizes: vec![args.size],
        until: Some(Until { count: args.count, time_ns: Some(ns(args.time.unwrap_or(WINDOW))) }),
        blocks: Some(args.run.blocks.unwrap_or(BLOCKS)),
        seed: args.run.seed(),
        ..Ping::default()
    };
    Ok(plan(&ping))
}

/// Runs a plan with traced configurations; without a single one that worked nothing was answered.
pub(super) fn run_traced(asked: &impl Experiment, terminal: &Terminal) -> anyhow::Result<Exit> {
    let run = asked.flags();
    let machine = run.machine()?;
    let plan = asked.planned(&machine)?;
    if run.only_planned() {
        return run.measure_and_deliver(plan, machine, terminal);
    }
    if !events_at_hand()? {
        return Ok(Exit::Unfit);
    }
    let result = run.measure(plan, machine, terminal)?;
    Ok(match run.deliver(&result, terminal)? {
        Exit::Done if result.records.iter().all(|record| record.anatomy.is_none()) => Exit::Failed,
        exit => exit,
    })
}

/// Whether the kernel's events can be had; if not, says why. Clears what dead runs left of them.
fn events_at_hand() -> anyhow::Result<bool> {
    match Tracefs::reach() {
        Ok(tracefs) => {
            instance::sweep(&tracefs);
            Ok(true)
        }
        Err(error) => {
            aside!("doorbell: {error}");
            Ok(false)
        }
    }
}
