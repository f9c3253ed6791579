// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell switch`.

use std::time::Duration;

use clap::ValueEnum;

use super::common::{RunArgs, named};
use super::experiment::Experiment;
pub use super::experiment::run;
use super::offered;
use super::sides::{contexts, scheduler};
use super::usage::Usage;
use crate::experiment::switch::{Switch, WORKING_SETS};
use doorbell_report::switch::{TOLD_FIRST, WRITES_ALONE};
use doorbell_results::configuration::{Placement, Scheduler, Until};
use doorbell_results::machine::Machine;
use doorbell_results::machine::topology::Topology;
use doorbell_results::plan::Plan;
use doorbell_results::quantity::{bytes, span};
use doorbell_subjects::mechanism::Contexts;
use doorbell_subjects::operation;

/// Arguments of `doorbell switch`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell switch                                       calls, faults, switches, on one core and on two\n  \
    doorbell switch switch-futex --scheduler other,fifo   one switch under both policies\n  \
    doorbell switch switch-futex touch --working-set sweep   what a switch costs with more to write each time\n  \
    doorbell switch timectxsw --count 500000 --placement same-core   the run of tsuna/contextswitch\n  \
    doorbell switch preempt-signal-timer preempt-watcher --contexts threads   how late preemption comes\n  \
    doorbell vm run --accel uintr --driver -- switch preempt-uintr-timer      by a timer without a signal")]
pub struct Args {
    /// Operations, or `all`: clock-read, getppid, gettid, gettid-syscall, read-nothing,
    /// page-fault-anonymous, page-fault-file, signal-self, switch-yield, switch-futex,
    /// switch-pipe, context1, timectxsw, timetctxsw2, touch; by name only, the protocols of
    /// other tools: cache-line, line-cas, handover-mutex, handover-semop, handover-mq,
    /// handover-signal, stream-pipe, stream-mq, turns-semop, echo-tcp, futex-wake-all,
    /// hackbench; and how late a thread is preempted, and what that takes from it:
    /// preempt-uintr-timer, preempt-signal-timer, preempt-timerfd, preempt-watcher
    #[arg(default_value = "all", value_name = "OPERATION", value_parser = offered::operations(), hide_possible_values = true)]
    operations: Vec<String>,
    /// What two sides are, comma separated
    #[arg(long, value_parser = contexts(), value_delimiter = ',', default_value = "processes,threads")]
    contexts: Vec<Contexts>,
    /// Where two sides run, comma separated
    #[arg(long, value_enum, value_delimiter = ',', default_value = "same-core,two-cores")]
    placement: Vec<Where>,
    /// Which CPUs those are: the first alone for same-core [default:
    /// the first two this process may use]
    #[arg(long, value_delimiter = ',', num_args = 1, value_name = "A,B")]
    cpus: Vec<u32>,
    /// Scheduling policies, comma separated; the second needs the right to real-time priority
    #[arg(long, value_parser = scheduler(), value_delimiter = ',', default_value = "other")]
    scheduler: Vec<Scheduler>,
    /// Bytes each side writes before each switch, comma separated, or `sweep`
    #[arg(long, value_delimiter = ',', default_value = "0", value_name = "BYTES", value_parser = working_set)]
    working_set: Vec<Set>,
    /// Operations between two clock readings [default: each operation's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    batch: Option<u32>,
    /// Operations per trial
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "time")]
    count: Option<u64>,
    /// Length of a trial
    #[arg(long, value_parser = span, value_name = "TIME", default_value = "100ms")]
    time: Duration,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Where {
    /// Both on one CPU: what is left is the switch
    SameCore,
    /// One CPU each: an interrupt and an exit from idle come on top
    TwoCores,
    /// Where the scheduler puts them
    Unpinned,
}

/// One working set, or all of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    Bytes(u32),
    Sweep,
}

/// The largest working set: the trial keeps two of them in shared memory.
const LARGEST_SET: u64 = 64 << 20;

pub(super) fn working_set(text: &str) -> Result<Set, String> {
    if text == "sweep" {
        return Ok(Set::Sweep);
    }
    bytes(text, 0..=LARGEST_SET).map(|bytes| Set::Bytes(bytes as u32))
}

impl Experiment for Args {
    fn name(&self) -> &'static str {
        "switch"
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        plan(self, machine)
    }
    fn sections(&self) -> &'static [&'static str] {
        &["operations"]
    }
    fn parts(&self) -> Vec<(&'static str, &'static str)> {
        vec![("touch", WRITES_ALONE), ("switch-futex", TOLD_FIRST)]
    }
}

fn plan(args: &Args, machine: &Machine) -> anyhow::Result<Plan> {
    let switch = Switch {
        operations: operations(&args.operations)?,
        contexts: args.contexts.clone(),
        placements: placements(&args.placement, &args.cpus, &machine.topology)?,
        schedulers: args.scheduler.clone(),
        working_sets: working_sets(&args.working_set),
        batch: args.batch,
        until: args.count.map_or_else(|| Until::time(args.time), Until::count),
        blocks: args.run.blocks.unwrap_or(5),
        seed: args.run.seed(),
    };
    let plan = switch.plan();
    if plan.configurations.is_empty() {
        return Err(Usage(
            "nothing is left to run: timetctxsw2 joins threads only, and touch needs --working-set"
                .to_owned(),
        )
        .into());
    }
    Ok(plan)
}

fn operations(names: &[String]) -> Result<Vec<String>, Usage> {
    let usual = operation::all().iter().filter(|operation| operation.usual);
    named(names, usual.map(|operation| operation.name), operation::find)
}

pub(super) fn working_sets(asked: &[Set]) -> Vec<u32> {
    let mut sets: Vec<u32> = asked
        .iter()
        .flat_map(|set| match set {
            Set::Bytes(bytes) => vec![*bytes],
            Set::Sweep => WORKING_SETS.to_vec(),
        })
        .collect();
    sets.sort_unstable();
    sets.dedup();
    sets
}

/// The placements that `wanted` names, on `cpus` or the first two that this process may use.
pub(super) fn placements(
    wanted: &[Where],
    cpus: &[u32],
    topology: &Topology,
) -> anyhow::Result<Vec<Placement>> {
    let (first, second) = match *cpus {
        [] => match topology.two_cores() {
            Some([first, second]) => (first, Some(second)),
            None => (topology.usable.iter().next().unwrap_or(0), None),
        },
        [one] => (one, None),
        [one, other] => (one, Some(other)),
        _ => return Err(Usage("--cpus takes one CPU or two: --cpus 0,1".to_owned()).into()),
    };
    topology.check(cpus).map_err(|error| Usage(error.to_string()))?;
    let pinned = |a, b| Placement { relation: topology.relation(a, b).name().to_owned(), cpus: Some([a, b]) };
    let mut placements = Vec::new();
    for place in wanted {
        placements.push(match (place, second) {
            (Where::SameCore, _) => pinned(first, first),
            (Where::TwoCores, Some(second)) => pinned(first, second),
            // One of several placements that this machine lacks is
            // left out; the only one asked for is an error.
            (Where::TwoCores, None) if wanted.len() > 1 => continue,
            (Where::TwoCores, None) => {
                return Err(Usage(format!(
                    "two-cores needs two CPUs, and this process may use {}",
                    topology.usable
                ))
                .into());
            }
            (Where::Unpinned, _) => Placement { relation: "unpinned".to_owned(), cpus: None },
        });
    }
    Ok(placements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(working_set("64K"), Ok(Set::Bytes(64 << 10)));
        assert_eq!(working_set("sweep"), Ok(Set::Sweep));
        for wrong in ["", "K", "1G", "65M", "99999999999999999999", "-1", "4k2"] {
            assert!(working_set(wrong).is_err(), "{wrong}");
        }
    }
}
