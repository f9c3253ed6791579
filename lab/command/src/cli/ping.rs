// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell ping`.

use std::time::Duration;

use clap::ValueEnum;

use super::common::{RunArgs, named};
use super::experiment::Experiment;
pub use super::experiment::run;
use super::numbers::message;
use super::offered;
use super::placements::PlacementArgs;
use super::sides::{USUAL, contexts, scheduler, timing};
use super::usage::Usage;
use crate::experiment::ping::{GAPS, Ping};
use doorbell_results::configuration::{Pattern, Scheduler, Timing, Until, WaitPolicy};
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_results::quantity::{gap, percent, span, wait_policy};
use doorbell_subjects::mechanism::{self, Contexts};

/// Arguments of `doorbell ping`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell ping futex                          round trips, and one way after gaps of 10us to 100ms\n  \
    doorbell ping futex eventfd --gap 0          two mechanisms back to back\n  \
    doorbell ping futex --gap 1ms --timing blocked   the waiter proven asleep before every wake-up\n  \
    doorbell ping all --placement same-core      every mechanism on one core\n  \
    doorbell ping pipe --pattern open-loop --gap 100us   due times kept whatever happens")]
pub struct Args {
    /// Mechanisms (`doorbell list` shows them), or `all`
    #[arg(default_value = mechanism::USUAL, value_name = "MECHANISM", value_parser = offered::mechanisms(), hide_possible_values = true)]
    mechanisms: Vec<String>,
    /// Who notifies whom [default: ping-pong for a gap of 0, one-way for the others]
    #[arg(long, value_enum)]
    pattern: Option<PatternKind>,
    /// Time between notifications, comma separated [default: 0,10us,100us,1ms,10ms,100ms]
    #[arg(long, value_delimiter = ',', value_parser = gap, value_name = "TIME")]
    gap: Vec<Duration>,
    /// Which moments are taken [default: around for back to back, else stamp]
    #[arg(long, value_parser = timing())]
    timing: Option<Timing>,
    /// How the waiter waits, comma separated: block, spin, spin-then-block=TIME, timeout=TIME
    #[arg(long, value_delimiter = ',', value_parser = wait_policy, default_value = "block", value_name = "POLICY")]
    wait: Vec<WaitPolicy>,
    /// Give each configuration a trial of its own, some tens of
    /// milliseconds at a time, instead of turns of a millisecond
    #[arg(long)]
    alone: bool,
    /// Bytes of message in shared memory, written before the
    /// notification and read after the wake-up
    #[arg(long, value_delimiter = ',', default_value = "0", value_name = "BYTES", value_parser = message)]
    size: Vec<u32>,
    /// What the two sides are, comma separated
    #[arg(long, value_parser = contexts(), value_delimiter = ',', default_value = USUAL)]
    contexts: Vec<Contexts>,
    /// Rounds per trial
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Length of a trial
    #[arg(long, value_parser = span, value_name = "TIME")]
    time: Option<Duration>,
    /// How the sides are scheduled
    #[arg(long, value_parser = scheduler(), default_value = "other")]
    scheduler: Scheduler,
    /// Slow every notification down by this share of the round trip, to test comparisons
    #[arg(long, value_parser = percent, value_name = "PERCENT", hide_short_help = true)]
    pub(super) inject_slowdown: Option<u32>,
    #[command(flatten)]
    placements: PlacementArgs,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PatternKind {
    /// There and back
    PingPong,
    /// One way; the next follows the gap after the waiter has taken the last
    OneWay,
    /// One way; due every gap whatever became of the ones before
    OpenLoop,
}

impl Experiment for Args {
    fn name(&self) -> &'static str {
        "ping"
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        plan(self, machine)
    }
}

fn plan(args: &Args, machine: &Machine) -> anyhow::Result<Plan> {
    let ping = Ping {
        mechanisms: mechanisms(&args.mechanisms)?,
        contexts: args.contexts.clone(),
        placements: args.placements.resolve(&machine.topology)?,
        one_cpu: machine.topology.usable.len() == 1,
        patterns: patterns(args),
        timing: args.timing,
        waits: args.wait.clone(),
        sizes: args.size.clone(),
        until: until(args),
        scheduler: args.scheduler,
        injected_slowdown_ppm: args.inject_slowdown,
        alone: args.alone,
        blocks: args.run.blocks,
        seed: args.run.seed(),
    };
    let plan = ping.plan();
    if plan.configurations.is_empty() {
        return Err(Usage(
            "nothing is left to run: a mechanism that spins cannot share a core with its notifier \
             nor be proven asleep, some join only threads or only processes (`doorbell list`), one \
             way needs --timing stamp or blocked, an open loop needs a gap, and a slowdown goes \
             into the round trips of mechanisms that block"
                .to_owned(),
        )
        .into());
    }
    Ok(plan)
}

pub(super) fn mechanisms(names: &[String]) -> Result<Vec<String>, Usage> {
    let mut chosen = named(names, mechanism::usual().map(|entry| entry.name()), mechanism::find)?;
    // The harness's own cost is a row of every result.
    if !chosen.iter().any(|name| name == "null") {
        chosen.push("null".to_owned());
    }
    Ok(chosen)
}

fn patterns(args: &Args) -> Vec<Pattern> {
    let gaps = if args.gap.is_empty() {
        std::iter::once(Duration::ZERO).chain(GAPS).collect()
    } else {
        args.gap.clone()
    };
    gaps.into_iter()
        .map(|gap| {
            let gap_ns = u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX);
            match args.pattern {
                None if gap_ns == 0 => Pattern::PingPong { gap_ns },
                None | Some(PatternKind::OneWay) => Pattern::OneWay { gap_ns },
                Some(PatternKind::PingPong) => Pattern::PingPong { gap_ns },
                Some(PatternKind::OpenLoop) => Pattern::OpenLoop { gap_ns },
            }
        })
        .collect()
}

fn until(args: &Args) -> Option<Until> {
    let time_ns = args.time.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    (args.count.is_some() || time_ns.is_some()).then_some(Until { count: args.count, time_ns })
}
