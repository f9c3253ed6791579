// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell why`.

use std::time::Duration;

use super::anatomy::run_traced;
use super::common::{Exit, RunArgs, Terminal};
use super::experiment::Experiment;
pub use super::experiment::run;
use super::offered;
use super::placements::{PlacementArgs, unpinned};
use super::sides::contexts;
use super::usage::Usage;
use crate::experiment::ping::Ping;
use crate::experiment::why::{GAP, KEPT, WINDOW, plan};
use doorbell_results::configuration::{Pattern, Timing, Until, WaitPolicy};
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_results::quantity::{gap, span, wait_policy};
use doorbell_subjects::mechanism::{self, Contexts};

/// Arguments of `doorbell why`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell why --above 1ms                 ten seconds of futex wake-ups; the worst five beyond 1 ms, each with its cause\n  \
    doorbell why --worst 10 --time 1m        the worst ten, however quick\n  \
    doorbell why eventfd --cpus 0,1 --load full\n  \
    doorbell why --wait timeout=50ms --above 10ms     was it lost, and rescued by the time-out?\n\n\
    A cause is named where events or counters of that very wake-up show it and it covers half of the wake-up or more; else it is\n  \
    unknown. Needs the kernel's trace events: root, or a tracefs this user may write. Exit status 4 where there is none.")]
pub struct Args {
    /// Mechanisms (`doorbell list` shows them)
    #[arg(default_value = "futex", value_name = "MECHANISM", value_parser = offered::mechanisms(), hide_possible_values = true)]
    mechanisms: Vec<String>,
    /// Only wake-ups that take longer than this [default: none is too quick]
    #[arg(long, value_parser = span, value_name = "TIME")]
    above: Option<Duration>,
    /// How many of the worst are kept
    #[arg(long, default_value_t = KEPT, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    worst: u32,
    /// Time between a wake-up and the next notification
    #[arg(long, value_parser = gap, value_name = "TIME")]
    gap: Option<Duration>,
    /// How the waiter waits: block, spin-then-block=TIME, timeout=TIME
    #[arg(long, value_parser = wait_policy, default_value = "block", value_name = "POLICY")]
    wait: WaitPolicy,
    /// What the two sides are
    #[arg(long, value_parser = contexts(), default_value = "processes")]
    contexts: Contexts,
    /// Length of a trial [default: 10s]
    #[arg(long, value_parser = span, value_name = "TIME")]
    time: Option<Duration>,
    #[command(flatten)]
    placements: PlacementArgs,
    #[command(flatten)]
    run: RunArgs,
}

impl Experiment for Args {
    fn name(&self) -> &'static str {
        "why"
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        from_flags(self, machine)
    }
    fn sections(&self) -> &'static [&'static str] {
        &["slow-wakes"]
    }
    fn run(self, terminal: &Terminal) -> anyhow::Result<Exit> {
        run_traced(&self, terminal)
    }
}

fn from_flags(args: &Args, machine: &Machine) -> anyhow::Result<Plan> {
    for name in &args.mechanisms {
        mechanism::find(name).map_err(|unknown| Usage(unknown.to_string()))?;
    }
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    // Where nothing is said, the scheduler's own choices are among what may have been slow.
    let placements = if args.placements.is_given() {
        args.placements.resolve(&machine.topology)?
    } else {
        vec![unpinned()]
    };
    let ping = Ping {
        mechanisms: args.mechanisms.clone(),
        contexts: vec![args.contexts],
        placements,
        one_cpu: machine.topology.usable.len() == 1,
        patterns: vec![Pattern::OneWay { gap_ns: ns(args.gap.unwrap_or(GAP)) }],
        timing: Some(Timing::Stamp),
        waits: vec![args.wait],
        until: Some(Until::time(args.time.unwrap_or(WINDOW))),
        blocks: Some(args.run.blocks.unwrap_or(1)),
        seed: args.run.seed(),
        ..Ping::default()
    };
    Ok(plan(&ping, args.worst, args.above.unwrap_or_default()))
}
