// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell ping` as a plan: the product of mechanisms, placements,
//! patterns, gaps, sizes and waiting policies.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use doorbell_results::configuration::{
    Configuration, Pattern, Placement, Scheduler, Timing, Until, WaitPolicy,
};
use doorbell_results::plan::Plan;
use doorbell_results::plan::bench::Bench;
use doorbell_subjects::mechanism::{Contexts, Waits};

/// What is asked for; every list is one axis of the plan.
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

/// The gaps of a one-way run that names none. The cost of a wake-up depends on how long the waiter
/// slept: one machine's futex wake took 8 µs after a sleep of 10 µs and 34 µs after one of 1 ms.
pub const GAPS: [Duration; 5] = [
    Duration::from_micros(10),
    Duration::from_micros(100),
    Duration::from_millis(1),
    Duration::from_millis(10),
    Duration::from_millis(100),
];

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
    /// The plan: every configuration that makes sense. A configuration that cannot be true is left
    /// out here, not measured and explained.
    pub fn plan(&self) -> Plan {
        let mut configurations = Vec::new();
        for subject in &self.mechanisms {
            for &contexts in &self.contexts {
                for placement in &self.placements {
                    for &pattern in &self.patterns {
                        for &wait in &self.waits {
                            for &size in &self.sizes {
                                let configuration = Configuration {
                                    subject: subject.clone(),
                                    contexts,
                                    pattern,
                                    timing: self.timing.unwrap_or_else(|| usual_timing(pattern)),
                                    wait,
                                    placement: placement.clone(),
                                    size,
                                    until: self.until.unwrap_or_else(|| Until::time(window(pattern))),
                                    scheduler: self.scheduler,
                                    injected_slowdown_ppm: self.injected_slowdown_ppm,
                                    load: None,
                                    trace: None,
                                    target: None,
                                    latency_limit_us: None,
                                    schedule: None,
                                    beside: None,
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
        let (bench, range) = if self.alone { (None, BLOCKS) } else { by_turns() };
        if bench.is_some() && self.until.is_none() {
            let turn = (RUN * 2 / *range.start() / configurations.len().max(1) as u32).clamp(LEAST, TURN);
            for configuration in &mut configurations {
                let wakes = Duration::from_nanos(configuration.pattern.gap_ns()) * (WAKES / 4);
                configuration.until = Until::time(turn.max(wakes).min(LONGEST / 2));
            }
        }
        let blocks = self.blocks.unwrap_or_else(|| usual_blocks(&configurations, range));
        Plan { bench, ..Plan::new("ping", configurations, blocks, self.seed) }
    }
}

/// How things take turns here, if they can, and how often two sides are made anew.
fn by_turns() -> (Option<Bench>, RangeInclusive<u32>) {
    (Some(super::bench::asked()), super::bench::PAIRS)
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
pub(crate) fn usual_window(pattern: Pattern) -> Until {
    Until::time(window(pattern))
}

fn window(pattern: Pattern) -> Duration {
    let gaps = Duration::from_nanos(pattern.gap_ns()) * WAKES;
    WINDOW.max(gaps).min(LONGEST)
}

/// Two spinning sides on one core only measure the scheduler's time slice, and a waiter that never
/// sleeps cannot be proven asleep.
pub fn makes_sense(configuration: &Configuration, one_cpu: bool) -> bool {
    let Ok(entry) = doorbell_subjects::mechanism::find(&configuration.subject) else { return true };
    let waits = entry.notification().waits;
    let spins = waits == Waits::Spins || (configuration.wait == WaitPolicy::Spin && waits != Waits::Nothing);
    let one_core = configuration.placement.cpus.map_or(one_cpu, |[a, b]| a == b);
    let sleeps = waits == Waits::Blocks && !matches!(configuration.wait, WaitPolicy::Spin);
    let one_way = matches!(configuration.pattern, Pattern::OneWay { .. } | Pattern::OpenLoop { .. });
    // Without a gap nothing is ever due, and one way there is no timing without stamps.
    let timed = configuration.pattern != Pattern::OpenLoop { gap_ns: 0 }
        && !(one_way && configuration.timing == Timing::Around);
    // The slowdown is a share of a round trip at each side, which
    // spinning sides do not time and a gap would be part of.
    let slowed = configuration.injected_slowdown_ppm.is_none()
        || !(one_way || spins || configuration.pattern.gap_ns() > 0);
    timed
        && slowed
        && !(spins && one_core)
        && (sleeps || configuration.timing != Timing::Blocked)
        && entry.notification().joins(configuration.contexts)
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
        ping.plan().configurations.into_iter().map(|configuration| configuration.subject).collect()
    }

    /// Under `taskset -c 0` two spinning sides that nobody had pinned
    /// once measured the scheduler's time slice.
    #[test]
    fn sides_that_spin_are_not_left_to_a_scheduler_with_one_cpu() {
        assert_eq!(subjects(false), ["futex", "spin", "null"]);
        assert_eq!(subjects(true), ["futex", "null"]);
    }
}
