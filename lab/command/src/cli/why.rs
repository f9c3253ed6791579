// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell why`.

use std::time::Duration;

use super::anatomy::{events_at_hand, is_traced};
use super::common::{Exit, RunArgs, Terminal};
pub use super::experiment::run;
use super::experiment::{About, Experiment};
use super::numbers::ns;
use super::offered;
use super::ping::Ping;
use super::placements::{PlacementArgs, unpinned};
use super::sides::contexts;
use super::usage::Usage;
use crate::run::subject::subject;
use doorbell_results::configuration::{Pattern, Timing, Trace, Until, WaitPolicy};
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_results::quantity::{gap, span, wait_policy};
use doorbell_results::record::ResultFile;
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
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    worst: u32,
    /// Time between a wake-up and the next notification: usually long enough for the waiter's CPU
    /// to go idle, and short enough for a thousand wake-ups a second
    #[arg(long, value_parser = gap, value_name = "TIME", default_value = "1ms")]
    gap: Duration,
    /// How the waiter waits: block, spin-then-block=TIME, timeout=TIME
    #[arg(long, value_parser = wait_policy, default_value = "block", value_name = "POLICY")]
    wait: WaitPolicy,
    /// What the two sides are
    #[arg(long, value_parser = contexts(), default_value = "processes")]
    contexts: Contexts,
    /// Length of a trial
    #[arg(long, value_parser = span, value_name = "TIME", default_value = "10s")]
    time: Duration,
    #[command(flatten)]
    placements: PlacementArgs,
    #[command(flatten)]
    run: RunArgs,
}

impl Experiment for Args {
    fn about(&self) -> About {
        About { name: "why", sections: &["slow-wakes"], ..About::default() }
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    /// Long trials in which the kernel's events are recorded for causes, and only the worst wakes
    /// kept.
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        for name in &self.mechanisms {
            mechanism::find(name).map_err(Usage::of)?;
        }
        // Where nothing is said, the scheduler's own choices are among what may have been slow.
        let placements = match self.placements.is_given() {
            true => self.placements.resolve(&machine.topology)?,
            false => vec![unpinned()],
        };
        let ping = Ping {
            mechanisms: self.mechanisms.clone(),
            contexts: vec![self.contexts],
            placements,
            one_cpu: machine.topology.usable.len() == 1,
            patterns: vec![Pattern::OneWay { gap_ns: ns(self.gap) }],
            timing: Some(Timing::Stamp),
            waits: vec![self.wait],
            until: Some(Until::time(self.time)),
            blocks: Some(self.run.blocks.unwrap_or(1)),
            seed: self.run.seed(),
            ..Ping::default()
        };
        let mut plan = ping.plan("why");
        let above_ns = self.above.map_or(0, ns);
        // Of the harness alone nobody is woken.
        for configuration in plan.configurations.iter_mut().filter(|one| !subject(one).is_harness()) {
            configuration.trace = Some(Trace::Worst { keep: self.worst, above_ns });
        }
        Ok(plan)
    }
    fn before(&self, _: &Plan, _: &Machine, _: &Terminal) -> anyhow::Result<Option<Exit>> {
        Ok(events_at_hand())
    }
    fn answers(&self, result: &ResultFile) -> bool {
        is_traced(result)
    }
}
