// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell switch`.

use std::time::Duration;

use clap::ValueEnum;

use super::common::{RunArgs, named};
pub use super::experiment::run;
use super::experiment::{About, Experiment};
use super::offered;
use super::placements::{on, unpinned};
use super::sides::{contexts, scheduler};
use super::usage::{Usage, refuse};
use doorbell_report::switch::{TOLD_FIRST, WRITES_ALONE};
use doorbell_results::configuration::{Configuration, Pattern, Placement, Scheduler, Until};
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

/// The working sets of a sweep: a page, then up to more than a second-level cache holds.
const WORKING_SETS: [u32; 7] = [0, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];

/// The largest working set: the trial keeps two of them in shared memory.
const LARGEST_SET: u64 = 64 << 20;

pub(super) fn working_set(text: &str) -> Result<Set, String> {
    if text == "sweep" {
        return Ok(Set::Sweep);
    }
    bytes(text, 0..=LARGEST_SET).map(|bytes| Set::Bytes(bytes as u32))
}

impl Experiment for Args {
    fn about(&self) -> About {
        About {
            name: "switch",
            sections: &["operations"],
            parts: vec![("touch", WRITES_ALONE), ("switch-futex", TOLD_FIRST)],
            ..About::default()
        }
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        let usual = operation::all().iter().filter(|operation| operation.usual);
        let names = named(&self.operations, usual.map(|operation| operation.name), operation::find)?;
        let placements = placements(&self.placement, &self.cpus, &machine.topology)?;
        let configurations = names.iter().flat_map(|name| self.of(name, &placements)).collect::<Vec<_>>();
        if configurations.is_empty() {
            return refuse(
                "nothing is left to run: timetctxsw2 joins threads only, and touch needs --working-set",
            );
        }
        Ok(Plan::new("switch", configurations, self.run.blocks.unwrap_or(5), self.run.seed()))
    }
}

impl Args {
    /// What makes sense of the operation `name`: where it has one side, on the first of the CPUs.
    fn of(&self, name: &str, placements: &[Placement]) -> Vec<Configuration> {
        let Ok(operation) = operation::find(name) else { return Vec::new() };
        let until = self.count.map_or_else(|| Until::time(self.time), Until::count);
        let pattern = Pattern::Operation { batch: self.batch.unwrap_or(operation.form.batch) };
        // One side has nobody to be placed against, to share memory with or to be preferred over.
        let alone = !operation.form.two_sided;
        let several = if alone { 1 } else { usize::MAX };
        let mut configurations = Vec::new();
        for placement in placements.iter().take(several) {
            let one_core = placement.cpus.is_some_and(|[a, b]| a == b);
            if !alone && one_core && !operation.shares_a_core {
                continue;
            }
            let joined = self.contexts.iter().filter(|contexts| operation.joins(**contexts));
            for &contexts in joined.take(several) {
                for &scheduler in self.scheduler.iter().take(several) {
                    for size in working_sets(&self.working_set) {
                        if uses_size(name, size, alone) {
                            configurations.push(Configuration {
                                contexts,
                                placement: if alone { placement.alone() } else { placement.clone() },
                                size,
                                scheduler,
                                ..Configuration::new(name, pattern, until)
                            });
                        }
                    }
                }
            }
        }
        configurations
    }
}

/// Whether a working set of `size` means something to the operation:
/// `touch` is nothing without one, a call or a fault knows none, and two
/// sides that only yield have no hand-over before which to write it.
fn uses_size(name: &str, size: u32, alone: bool) -> bool {
    match name {
        "touch" => size > 0,
        "switch-yield" | "timetctxsw2" => size == 0,
        // The protocols of other tools write none.
        _ if operation::find(name).is_ok_and(|operation| !operation.usual) => size == 0,
        _ => size == 0 || !alone,
    }
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
        _ => return refuse("--cpus takes one CPU or two: --cpus 0,1"),
    };
    topology.check(cpus).map_err(Usage::of)?;
    let mut placements = Vec::new();
    for place in wanted {
        placements.push(match (place, second) {
            (Where::SameCore, _) => on([first; 2], topology),
            (Where::TwoCores, Some(second)) => on([first, second], topology),
            // One of several placements that this machine lacks is
            // left out; the only one asked for is an error.
            (Where::TwoCores, None) if wanted.len() > 1 => continue,
            (Where::TwoCores, None) => {
                let usable = &topology.usable;
                return refuse(format!("two-cores needs two CPUs, and this process may use {usable}"));
            }
            (Where::Unpinned, _) => unpinned(),
        });
    }
    Ok(placements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::typed;
    use doorbell_subjects::mechanism::Contexts;
    use std::collections::{BTreeSet, HashSet};

    #[test]
    fn each_operation_is_planned_once_where_and_with_what_it_makes_sense() {
        let mut args: Args = typed("--scheduler other,fifo --working-set sweep");
        args.operations = operation::all().iter().map(|operation| operation.name.to_owned()).collect();
        let pinned = |relation: &str, cpus| Placement { relation: relation.to_owned(), cpus: Some(cpus) };
        let placements = [pinned("same-core", [3, 3]), pinned("same-l3", [3, 4])];
        let all: Vec<Configuration> =
            args.operations.iter().flat_map(|name| args.of(name, &placements)).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        let of = |name: &str| all.iter().filter(|one| one.subject == name).collect::<Vec<_>>();
        let calls = of("getppid");
        assert_eq!((calls.len(), calls[0].placement.cpus), (1, Some([3, 3])), "one side, on the first CPU");
        let sizes = |name: &str| of(name).iter().map(|one| one.size).filter(|size| *size > 0).collect();
        let (with, alone): (BTreeSet<u32>, BTreeSet<u32>) = (sizes("switch-futex"), sizes("touch"));
        assert_eq!(with, alone, "each working set is also written without a switch");
        let threads = of("timetctxsw2");
        let right = threads.iter().all(|one| one.contexts == Contexts::Threads && one.size == 0);
        assert!(right && !threads.is_empty(), "processes do not play what only threads can");
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(working_set("64K"), Ok(Set::Bytes(64 << 10)));
        assert_eq!(working_set("sweep"), Ok(Set::Sweep));
        for wrong in ["", "K", "1G", "65M", "99999999999999999999", "-1", "4k2"] {
            assert!(working_set(wrong).is_err(), "{wrong}");
        }
    }
}
