// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell anatomy`.

use std::time::Duration;

use super::common::{Exit, RunArgs, Terminal};
pub use super::experiment::run;
use super::experiment::{About, Experiment};
use super::numbers::ns;
use super::offered;
use super::out::aside;
use super::ping::{Ping, mechanisms};
use super::placements::PlacementArgs;
use super::sides::contexts;
use crate::run::subject::subject;
use doorbell_harness::trace::{Tracefs, instance};
use doorbell_results::configuration::{Configuration, Pattern, Timing, Trace, Until, WaitPolicy};
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_results::quantity::{gap, span, wait_policy};
use doorbell_results::record::ResultFile;
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
    /// Time between a wake-up and the next notification, comma separated: usually of a waiter that
    /// has only just fallen asleep, and of one whose CPU has gone idle for good
    #[arg(long, value_delimiter = ',', value_parser = gap, value_name = "TIME", default_value = "10us,1ms")]
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
    /// Length of a trial
    #[arg(long, value_parser = span, value_name = "TIME", default_value = "200ms")]
    time: Duration,
    #[command(flatten)]
    placements: PlacementArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// Bytes of message unless told otherwise: one cache line, so that there is something to read.
const MESSAGE: u32 = 64;

/// Blocks unless told otherwise: pairs enough for an interval on what tracing costs.
const BLOCKS: u32 = 6;

/// Most wakes of a trial: the buffer of the events holds them all.
const MOST: u64 = 10_000;

impl Experiment for Args {
    fn about(&self) -> About {
        About { name: "anatomy", sections: &["stages"], ..About::default() }
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    /// Every configuration twice, with the kernel's events recorded and without, so that what
    /// recording costs is measured in the same blocks.
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        let ping = Ping {
            mechanisms: mechanisms(&self.mechanisms)?,
            contexts: self.contexts.clone(),
            placements: self.placements.resolve(&machine.topology)?,
            one_cpu: machine.topology.usable.len() == 1,
            patterns: self.gap.iter().map(|gap| Pattern::OneWay { gap_ns: ns(*gap) }).collect(),
            timing: Some(Timing::Stamp),
            waits: self.wait.clone(),
            sizes: vec![self.size],
            until: Some(Until { count: Some(self.count.unwrap_or(MOST)), time_ns: Some(ns(self.time)) }),
            blocks: Some(self.run.blocks.unwrap_or(BLOCKS)),
            seed: self.run.seed(),
            ..Ping::default()
        };
        let mut plan = ping.plan("anatomy");
        let both = |bare: Configuration| {
            // Of the harness alone nobody is woken.
            let traced = (!subject(&bare).is_harness())
                .then(|| Configuration { trace: Some(Trace::Stages), ..bare.clone() });
            traced.into_iter().chain([bare])
        };
        plan.configurations = plan.configurations.into_iter().flat_map(both).collect();
        Ok(plan)
    }
    fn before(&self, _: &Plan, _: &Machine, _: &Terminal) -> anyhow::Result<Option<Exit>> {
        Ok(events_at_hand())
    }
    fn answers(&self, result: &ResultFile) -> bool {
        is_traced(result)
    }
}

/// How a verb ends that needs the kernel's events, where they cannot be had; says why. Clears what
/// dead runs left of them.
pub(super) fn events_at_hand() -> Option<Exit> {
    match Tracefs::reach() {
        Ok(tracefs) => {
            instance::sweep(&tracefs);
            None
        }
        Err(error) => {
            aside!("doorbell: {error}");
            Some(Exit::Unfit)
        }
    }
}

/// Whether any trace worked; without, nothing was answered.
pub(super) fn is_traced(result: &ResultFile) -> bool {
    result.records.iter().any(|record| record.anatomy.is_some())
}
