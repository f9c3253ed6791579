// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell ping`.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::ValueEnum;

use super::bounds::makes_sense;
use super::common::{RunArgs, named};
pub use super::experiment::run;
use super::experiment::{About, Experiment};
use super::numbers::{message, ns};
use super::offered;
use super::placements::PlacementArgs;
use super::sides::{USUAL, contexts, scheduler, timing};
use super::usage::{Usage, refuse};
use crate::run::bench::{PAIRS, asked};
use doorbell_results::configuration::{
    Configuration, Pattern, Placement, Scheduler, Timing, Until, WaitPolicy,
};
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
    /// Time between notifications, comma separated: what a wake-up costs depends on how long the
    /// waiter slept
    #[arg(long, value_delimiter = ',', value_parser = gap, value_name = "TIME", default_value = "0,10us,100us,1ms,10ms,100ms")]
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
    fn about(&self) -> About {
        About { name: "ping", ..About::default() }
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        let time_ns = self.time.map(ns);
        let count = self.count;
        let ping = Ping {
            mechanisms: mechanisms(&self.mechanisms)?,
            contexts: self.contexts.clone(),
            placements: self.placements.resolve(&machine.topology)?,
            one_cpu: machine.topology.usable.len() == 1,
            patterns: self.gap.iter().map(|gap| pattern(self.pattern, ns(*gap))).collect(),
            timing: self.timing,
            waits: self.wait.clone(),
            sizes: self.size.clone(),
            until: (count.is_some() || time_ns.is_some()).then_some(Until { count, time_ns }),
            scheduler: self.scheduler,
            injected_slowdown_ppm: self.inject_slowdown,
            alone: self.alone,
            blocks: self.run.blocks,
            seed: self.run.seed(),
        };
        let plan = ping.plan("ping");
        if plan.configurations.is_empty() {
            return refuse(
                "nothing is left to run: a mechanism that spins cannot share a core with its notifier \
                 nor be proven asleep, some join only threads or only processes (`doorbell list`), one \
                 way needs --timing stamp or blocked, an open loop needs a gap, and a slowdown goes \
                 into the round trips of mechanisms that block",
            );
        }
        Ok(plan)
    }
}

pub(super) fn mechanisms(names: &[String]) -> Result<Vec<String>, Usage> {
    let mut chosen = named(names, mechanism::usual().map(|entry| entry.name()), mechanism::find)?;
    // The harness's own cost is a row of every result.
    if !chosen.iter().any(|name| name == "null") {
        chosen.push("null".to_owned());
    }
    Ok(chosen)
}

fn pattern(kind: Option<PatternKind>, gap_ns: u64) -> Pattern {
    match kind {
        None if gap_ns == 0 => Pattern::PingPong { gap_ns },
        None | Some(PatternKind::OneWay) => Pattern::OneWay { gap_ns },
        Some(PatternKind::PingPong) => Pattern::PingPong { gap_ns },
        Some(PatternKind::OpenLoop) => Pattern::OpenLoop { gap_ns },
    }
}

/// Wake-ups of one side by the other, of this verb and of others; every list is one axis of the
/// plan.
#[derive(Debug, Clone)]
pub struct Ping {
    pub mechanisms: Vec<String>,
    /// Two processes, two threads, or both.
    pub contexts: Vec<Contexts>,
    pub placements: Vec<Placement>,
    /// Whether sides that are not pinned have one CPU between them.
    pub one_cpu: bool,
    /// Who notifies whom, and when.
    pub patterns: Vec<Pattern>,
    /// Which moments are taken; none leaves the choice to the pattern.
    pub timing: Option<Timing>,
    pub waits: Vec<WaitPolicy>,
    pub sizes: Vec<u32>,
    /// When a trial ends; none gives each trial what its gap needs.
    pub until: Option<Until>,
    /// How the sides are scheduled.
    pub scheduler: Scheduler,
    /// A slowdown put in on purpose.
    pub injected_slowdown_ppm: Option<u32>,
    /// Whether each has a trial of its own, and nothing takes turns in slices.
    pub alone: bool,
    /// Repetitions, if not the usual number.
    pub blocks: Option<u32>,
    pub seed: u64,
}

impl Default for Ping {
    /// Nothing yet, back to back between two processes that the scheduler puts where it likes.
    fn default() -> Self {
        Self {
            mechanisms: Vec::new(),
            contexts: vec![Contexts::Processes],
            placements: vec![Placement::default()],
            one_cpu: false,
            patterns: vec![Pattern::PingPong { gap_ns: 0 }],
            timing: None,
            waits: vec![WaitPolicy::Block],
            sizes: vec![0],
            until: None,
            scheduler: Scheduler::Other,
            injected_slowdown_ppm: None,
            alone: false,
            blocks: None,
            seed: 1,
        }
    }
}

/// How long a trial lasts unless told otherwise: some thousand wakes
/// of the slowest kind back to back.
const WINDOW: Duration = Duration::from_millis(50);

/// What the windows of a run take together unless told otherwise, if
/// [`BLOCKS`] allow it. A machine that is slow for half a second now and
/// then is averaged over by many short blocks, and not by few long ones.
const RUN: Duration = Duration::from_secs(5);

/// Fewest and most blocks unless told otherwise, of trials.
const BLOCKS: RangeInclusive<u32> = 10..=60;

/// What a pair of sides measures of a configuration in slices, and
/// the least of it where there are many.
const TURN: Duration = Duration::from_millis(25);
const LEAST: Duration = Duration::from_millis(5);

/// Fewest wakes a trial with a gap is given time for, as long as that
/// takes no more than [`LONGEST`].
const WAKES: u32 = 20;

/// Longest window a gap can ask for.
const LONGEST: Duration = Duration::from_secs(1);

impl Ping {
    /// The plan of `experiment`: every configuration that makes sense. A configuration that cannot
    /// be true is left out here, not measured and explained.
    pub fn plan(&self, experiment: &str) -> Plan {
        let mut configurations = Vec::new();
        for subject in &self.mechanisms {
            for &contexts in &self.contexts {
                for placement in &self.placements {
                    for &pattern in &self.patterns {
                        for &wait in &self.waits {
                            for &size in &self.sizes {
                                let until = self.until.unwrap_or_else(|| usual_window(pattern));
                                let configuration = Configuration {
                                    contexts,
                                    timing: self.timing.unwrap_or_else(|| usual_timing(pattern)),
                                    wait,
                                    placement: placement.clone(),
                                    size,
                                    scheduler: self.scheduler,
                                    injected_slowdown_ppm: self.injected_slowdown_ppm,
                                    ..Configuration::new(&**subject, pattern, until)
                                };
                                if makes_sense(&configuration, self.one_cpu) {
                                    configurations.push(configuration);
                                }
                            }
                        }
                    }
                }
            }
        }
        // Whatever was asked for twice is run once.
        let mut seen = HashSet::new();
        configurations.retain(|configuration| seen.insert(configuration.clone()));
        let (bench, range) = if self.alone { (None, BLOCKS) } else { (Some(asked()), PAIRS) };
        if bench.is_some() && self.until.is_none() {
            let turn = (RUN * 2 / *range.start() / configurations.len().max(1) as u32).clamp(LEAST, TURN);
            for configuration in &mut configurations {
                let wakes = Duration::from_nanos(configuration.pattern.gap_ns()) * (WAKES / 4);
                configuration.until = Until::time(turn.max(wakes).min(LONGEST / 2));
            }
        }
        let blocks = self.blocks.unwrap_or_else(|| usual_blocks(&configurations, range));
        Plan { bench, ..Plan::new(experiment, configurations, blocks, self.seed) }
    }
}

/// As many blocks as [`RUN`] has room for; how long a trial takes that ends by count alone is not
/// known, and it gets the fewest.
fn usual_blocks(configurations: &[Configuration], range: RangeInclusive<u32>) -> u32 {
    let windows: Option<u64> = configurations.iter().map(|configuration| configuration.until.time_ns).sum();
    let room = windows.map_or(0, |block_ns| RUN.as_nanos() as u64 / block_ns.max(1));
    u32::try_from(room).unwrap_or(u32::MAX).clamp(*range.start(), *range.end())
}

/// A ping-pong needs no stamps; one way there is no other way.
fn usual_timing(pattern: Pattern) -> Timing {
    match pattern {
        Pattern::PingPong { gap_ns: 0 } => Timing::Around,
        _ => Timing::Stamp,
    }
}

/// Long enough for [`WAKES`] wakes, within reason.
pub(super) fn usual_window(pattern: Pattern) -> Until {
    let gaps = Duration::from_nanos(pattern.gap_ns()) * WAKES;
    Until::time(WINDOW.max(gaps).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_few_configurations_has_many_blocks_and_one_of_many_configurations_has_ten() {
        let configurations = |count: usize, until| {
            let configuration =
                Configuration { until, ..doorbell_results::record::sample::configuration("futex") };
            vec![configuration; count]
        };
        let window = Until::time(WINDOW);
        let blocks = [1, 3, 30].map(|count| usual_blocks(&configurations(count, window), BLOCKS));
        assert_eq!(blocks, [60, 33, 10]);
        assert_eq!(usual_blocks(&configurations(1, Until::count(10_000_000)), BLOCKS), 10);
    }

    fn subjects(one_cpu: bool) -> Vec<String> {
        let ping = Ping {
            mechanisms: ["futex", "spin", "null", "futex"].map(str::to_owned).to_vec(),
            one_cpu,
            ..Ping::default()
        };
        ping.plan("ping").configurations.into_iter().map(|configuration| configuration.subject).collect()
    }

    /// Under `taskset -c 0` two spinning sides that nobody had pinned
    /// once measured the scheduler's time slice.
    #[test]
    fn sides_that_spin_are_not_left_to_a_scheduler_with_one_cpu() {
        assert_eq!(subjects(false), ["futex", "spin", "null"]);
        assert_eq!(subjects(true), ["futex", "null"]);
    }
}
