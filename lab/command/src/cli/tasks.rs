// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell tasks`.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::builder::TypedValueParser;

use super::common::{Exit, RunArgs, Terminal, named, once};
pub use super::experiment::run;
use super::experiment::{About, Experiment};
use super::numbers::{Numbers, numbers};
use super::offered;
use super::out::aside;
use super::sides::one_of;
use super::switch::{Set, Where, placements, working_set, working_sets};
use super::usage::refuse;
use doorbell_report::tasks;
use doorbell_report::unit::count;
use doorbell_report::wording::counted;
use doorbell_results::configuration::{Configuration, Pattern, Placement, Until};
use doorbell_results::machine::Machine;
use doorbell_results::plan::{FEWEST_BLOCKS, Plan};
use doorbell_results::quantity::span;
use doorbell_subjects::mechanism::Contexts;
use doorbell_subjects::task::limits::{self as tasks_limits, Ceiling};
use doorbell_subjects::task::{self, MadeOf, Measured};
use doorbell_verdict::claims::coroutines::{self, BOARD, MAKING, PARTS, SWITCHING};

/// Arguments of `doorbell tasks`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell tasks                                        every kind, 10 and 1000 tasks\n  \
    doorbell tasks stackless process-futex -n 10..10000 -y 1,10,1000\n  \
    doorbell tasks life-fork life-thread life-future --series making   50 to 300 tasks made, run once, reaped\n  \
    doorbell tasks --working-set sweep -n 100             where cache misses overtake the hand-off\n  \
    doorbell tasks --document                             a study's experiments, its claims held against this machine")]
pub struct Args {
    /// Kinds of task, or `all`: call (the control, always run), stackless, stackful, stackful-bare,
    /// tokio, async-executor, thread-futex, thread-yield, process-futex, process-pipe,
    /// process-eventfd, process-yield; made, run once and reaped: life-future, life-stackful,
    /// life-thread, life-fork, life-fork-exec, life-vfork, life-posix-spawn, life-clone; by name
    /// only: stackless-rotating, process-pair, process-pair-rotating, timer-ticks
    #[arg(value_name = "KIND", value_parser = offered::kinds(), hide_possible_values = true)]
    kinds: Vec<String>,
    /// Tasks, comma separated; A..B goes up by ten times [default: 10,1000]
    #[arg(short = 'n', long, value_delimiter = ',', value_name = "N", value_parser = how_many)]
    tasks: Vec<Numbers>,
    /// Numbers of tasks of the study by the makers of tornado-os, comma separated
    #[arg(long, value_parser = series(), value_delimiter = ',', conflicts_with = "tasks", value_name = "SERIES")]
    series: Vec<&'static [u32]>,
    /// All experiments of that study, each with its numbers of tasks, its queue and its way of
    /// measuring beside better ones
    #[arg(long, conflicts_with_all = ["kinds", "tasks", "yields", "series", "working_set"])]
    document: bool,
    /// Turns of each task, comma separated; each ends with a hand-off [default: 10,000 hand-offs,
    /// in 10 to 100 turns; 1 for kinds that take no more]
    #[arg(short = 'y', long, value_delimiter = ',', value_name = "Y", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    yields: Vec<u32>,
    /// Bytes each task writes in its turn, comma separated, or `sweep`
    #[arg(long, value_delimiter = ',', default_value = "0", value_name = "BYTES", value_parser = working_set)]
    working_set: Vec<Set>,
    /// Where threads and processes run, comma separated: all on one
    /// CPU, or dealt out in turn over two
    #[arg(long, value_enum, value_delimiter = ',', default_value = "same-core")]
    placement: Vec<Where>,
    /// Which CPUs those are: the first alone for same-core [default:
    /// the first two this process may use]
    #[arg(long, value_delimiter = ',', num_args = 1, value_name = "A,B")]
    cpus: Vec<u32>,
    /// Generations of a trial: all tasks made, run and reaped
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "time")]
    count: Option<u64>,
    /// Length of a trial; the generation that runs then is brought to its end
    #[arg(long, value_parser = span, value_name = "TIME", default_value = "50ms")]
    time: Duration,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

/// The numbers of tasks of a series.
fn series() -> impl TypedValueParser<Value = &'static [u32]> {
    one_of(&[
        ("switching", "100, 150, 200, 250, 300, 320, 350, 380", &SWITCHING as &[u32]),
        ("making", "50, 100, 150, 200, 250, 300", &MAKING),
        ("board", "10, 20, 30, 40, 50, 60, 70, 80", &BOARD),
    ])
}

fn how_many(text: &str) -> Result<Numbers, String> {
    numbers(text, 2..=100_000)
}

impl Experiment for Args {
    fn about(&self) -> About {
        About {
            name: "tasks",
            sections: &["tasks"],
            parts: parts().collect(),
            claims: Some(coroutines::SOURCE.name),
        }
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        plan(self, machine)
    }
    fn before(&self, plan: &Plan, machine: &Machine, terminal: &Terminal) -> anyhow::Result<Option<Exit>> {
        // Before anything is started, so that the limits can be raised first.
        if !terminal.quiet {
            let without = left_out(&self.kinds, plan);
            if !without.is_empty() {
                aside!("doorbell: left out, for they take one turn a task (-y 1): {}", without.join(", "));
            }
            ceilings(plan, machine).iter().for_each(|line| {
                aside!("{line}");
            });
        }
        let mut lacking = 0;
        let mut told = BTreeSet::new();
        for configuration in &plan.configurations {
            let Some(reason) = tasks_limits::lacks(configuration, machine) else { continue };
            lacking += 1;
            if told.insert((configuration.subject.clone(), reason.clone())) {
                aside!("doorbell: {}: {reason}", configuration.subject);
            }
        }
        if lacking > 0 && lacking == plan.configurations.len() {
            anyhow::bail!("nothing of this can be run here; see the limits above");
        }
        if lacking > 0 {
            aside!(
                "doorbell: {} of {} will be skipped",
                counted(lacking as u64, "configuration"),
                plan.configurations.len()
            );
        }
        Ok(None)
    }
}

/// How many tasks of each kind fit, by what is known of the kind before any is made.
fn ceilings(plan: &Plan, machine: &Machine) -> Vec<String> {
    let names: BTreeSet<&str> =
        plan.configurations.iter().map(|configuration| configuration.subject.as_str()).collect();
    let kinds = task::all().iter().filter(|kind| names.contains(kind.name));
    kinds
        .filter_map(|kind| {
            let Ceiling { tasks, limit } = tasks_limits::ceiling(kind, machine, kind.needs.bytes)?;
            Some(format!("{}: room for {} tasks here ({limit}).", kind.name, count(tasks)))
        })
        .collect()
}

fn plan(args: &Args, machine: &Machine) -> anyhow::Result<Plan> {
    fn or(asked: &[u32], usual: &[u32]) -> Vec<u32> {
        if asked.is_empty() { usual.to_vec() } else { asked.to_vec() }
    }
    let tasks = Tasks {
        kinds: kinds(&args.kinds)?,
        tasks: or(&how_many_each(args), &[10, 1000]),
        yields: or(&args.yields, &[*TURNS.end()]),
        working_sets: working_sets(&args.working_set),
        placements: placements(&args.placement, &args.cpus, &machine.topology)?,
        until: args.count.map_or_else(|| Until::time(args.time), Until::count),
        blocks: args.run.blocks.unwrap_or(FEWEST_BLOCKS),
        seed: args.run.seed(),
    };
    if args.document {
        return Ok(of_the_study(&tasks));
    }
    let mut plan = Tasks { tasks: Vec::new(), ..tasks.clone() }.plan();
    for &number in &tasks.tasks {
        let yields = or(&args.yields, &[usual_turns(number)]);
        plan.configurations
            .extend(Tasks { tasks: vec![number], yields, ..tasks.clone() }.plan().configurations);
    }
    if args.yields.is_empty() {
        let more = of_one_turn(&tasks)
            .plan()
            .configurations
            .into_iter()
            .filter(|configuration| !plan.configurations.contains(configuration));
        plan.configurations.extend(more.collect::<Vec<_>>());
    }
    // Who writes `all` is told what is left out; who writes a name means that kind.
    let named =
        left_out(&args.kinds, &plan).into_iter().find(|kind| args.kinds.iter().any(|name| name == kind));
    match named {
        Some(kind) => refuse(format!("{kind} takes one turn a task; write -y 1, or no -y")),
        None => Ok(plan),
    }
}

/// Turns of each of `tasks` where none are asked for: ten thousand hand-offs between making all and
/// reaping them, since a hundred thousand between processes take a second or two.
fn usual_turns(tasks: u32) -> u32 {
    (10_000 / tasks.max(1)).clamp(*TURNS.start(), *TURNS.end())
}

const TURNS: std::ops::RangeInclusive<u32> = 10..=100;

/// The kinds that do not take so many turns, with one, and the control that goes with them.
fn of_one_turn(asked: &Tasks) -> Tasks {
    let few = |name: &String| task::find(name).is_ok_and(|kind| !kind.takes(*TURNS.start()));
    let mut kinds: Vec<String> = asked.kinds.iter().filter(|name| few(name)).cloned().collect();
    if !kinds.is_empty() {
        kinds.insert(0, CONTROL.to_owned());
    }
    Tasks { kinds, yields: vec![1], ..asked.clone() }
}

/// Kinds that `names` ask for and `plan` does not run.
fn left_out(names: &[String], plan: &Plan) -> Vec<&'static str> {
    let asked = |kind: &str| names.iter().any(|name| name == "all" || name == kind);
    let planned = |kind: &str| plan.configurations.iter().any(|configuration| configuration.subject == kind);
    task::all().iter().map(|kind| kind.name).filter(|kind| asked(kind) && !planned(kind)).collect()
}

/// What queue, count and stamps cost by themselves: a row of every result.
const CONTROL: &str = "call";

/// The tasks that play a part in what is told of them.
pub(super) fn parts() -> impl Iterator<Item = (&'static str, &'static str)> {
    PARTS.into_iter().chain([(CONTROL, tasks::CONTROL)])
}

/// The numbers of tasks asked for, each once.
fn how_many_each(args: &Args) -> Vec<u32> {
    let series = args.series.iter().copied().flatten();
    let mut numbers: Vec<u32> = Numbers::of(&args.tasks).into_iter().chain(series.copied()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn kinds(names: &[String]) -> anyhow::Result<Vec<String>> {
    let mut chosen = if names.is_empty() {
        task::all().iter().filter(|kind| kind.usual).map(|kind| kind.name.to_owned()).collect()
    } else {
        named(names, task::all().iter().map(|kind| kind.name), task::find)?
    };
    chosen.insert(0, CONTROL.to_owned());
    once(&mut chosen);
    Ok(chosen)
}

/// What is asked for; every list is one axis of the plan.
#[derive(Debug, Clone)]
struct Tasks {
    /// Kinds of task, by name.
    kinds: Vec<String>,
    tasks: Vec<u32>,
    yields: Vec<u32>,
    /// Bytes that each task writes in its turn.
    working_sets: Vec<u32>,
    /// Where threads and processes run; code runs on the first CPU of the first.
    placements: Vec<Placement>,
    /// When a trial ends: after so many generations, or so much time.
    until: Until,
    blocks: u32,
    seed: u64,
}

impl Tasks {
    /// The plan: every configuration that makes sense, once.
    fn plan(&self) -> Plan {
        let mut configurations: Vec<Configuration> = Vec::new();
        for name in &self.kinds {
            let Ok(kind) = task::find(name) else { continue };
            let lives = kind.measured == Measured::Lives;
            for placement in &self.placements {
                for &tasks in &self.tasks {
                    for &yields in &self.yields {
                        for &size in &self.working_sets {
                            // A task that lives once has no turns between which to write.
                            let (yields, size) = if lives { (0, 0) } else { (yields, size) };
                            let code = kind.made_of == MadeOf::Code || lives;
                            let placement = if code { placement.alone() } else { placement.clone() };
                            let contexts = match kind.made_of {
                                MadeOf::Processes => Contexts::Processes,
                                MadeOf::Code | MadeOf::Threads => Contexts::Threads,
                            };
                            let pattern = Pattern::Tasks { tasks, yields };
                            let configuration = Configuration {
                                contexts,
                                placement,
                                size,
                                ..Configuration::new(&**name, pattern, self.until)
                            };
                            if kind.takes(yields) && !configurations.contains(&configuration) {
                                configurations.push(configuration);
                            }
                        }
                    }
                }
            }
        }
        Plan::new("tasks", configurations, self.blocks, self.seed)
    }
}

/// The experiments of the study whose claims a run is held against:
/// its two comparisons over its own numbers of tasks, its queue beside
/// one that is O(1), its way of measuring beside a cycle counter.
fn of_the_study(asked: &Tasks) -> Plan {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let switching = [
        "call",
        "stackless",
        "stackless-rotating",
        "process-pair",
        "process-pair-rotating",
        "process-futex",
        "timer-ticks",
    ];
    let mut making = MAKING.to_vec();
    making.extend(BOARD.iter().filter(|tasks| !MAKING.contains(tasks)));
    let switching =
        Tasks { kinds: names(&switching), tasks: SWITCHING.to_vec(), yields: vec![1], ..asked.clone() };
    let making = Tasks { kinds: names(&["life-future", "life-fork"]), tasks: making, ..asked.clone() };
    let mut plan = switching.plan();
    plan.configurations.extend(making.plan().configurations);
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_configuration_is_planned_once_and_every_claim_about_the_study_finds_its_own() {
        let pinned = |cpus| Placement { relation: "x".to_owned(), cpus: Some(cpus) };
        let tasks = Tasks {
            kinds: task::all().iter().map(|kind| kind.name.to_owned()).collect(),
            tasks: vec![10, 1000],
            yields: vec![1, 100],
            working_sets: vec![0, 4096],
            placements: vec![pinned([1, 1]), pinned([1, 0])],
            until: Until::count(1),
            blocks: 1,
            seed: 1,
        };
        // Code runs on one CPU.
        let usual = [("stackless", 2 * 2 * 2), ("process-futex", 2 * 2 * 2 * 2)];
        let study = [("stackless-rotating", 2 * 8), ("life-fork", 13)];
        for (plan, numbers) in [(tasks.plan(), usual), (of_the_study(&tasks), study)] {
            let distinct: HashSet<&Configuration> = plan.configurations.iter().collect();
            assert_eq!(distinct.len(), plan.configurations.len());
            for (name, number) in numbers {
                let of_it = plan.configurations.iter().filter(|one| one.subject == name);
                assert_eq!(of_it.count(), number, "{name}");
            }
        }
    }
}
