// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bounds that a plan keeps, whichever way it comes: from flags, which have them too, from a
//! plan file, or from a result that somebody else wrote and that is run again.

use std::fmt::Display;
use std::ops::RangeInclusive;

use doorbell_harness::load;
use doorbell_results::configuration::{Configuration, Pattern, Target, Timing, Trace, WaitPolicy};
use doorbell_results::plan::Plan;
use doorbell_results::quantity::LONGEST_NS;
use doorbell_results::schedule::Schedule;
use doorbell_subjects::mechanism::{self, Waits};

use super::usage::Usage;

/// Numbers of blocks, as `--blocks` takes them.
const BLOCKS: RangeInclusive<u32> = 1..=10_000;
/// The longest message, as `--size` takes it.
const LARGEST: u32 = 1 << 26;
/// Rounds of a trial that no time ends.
const MOST_ROUNDS: u64 = 1_000_000_000;
/// Workers of a load for each CPU here, ten times a full load, and as
/// many as there may be on any machine.
const WORKERS: (u32, u32) = (16, 64);
/// Trials of a run: more than flags ask for that name all pairs of 64
/// CPUs, and as many blocks as there may be.
const MOST_TRIALS: usize = 50_000_000;

/// Refuses a plan that asks for more than the flags let anybody ask for.
pub(super) fn check(plan: &Plan) -> Result<(), Usage> {
    if !plan.looks.is_sorted() || plan.looks.iter().any(|look| !BLOCKS.contains(look)) {
        return Err(Usage(format!(
            "looks are {:?}; they are numbers from 1 to 10000, the least first",
            plan.looks
        )));
    }
    if !BLOCKS.contains(&plan.blocks) {
        return Err(Usage(format!("blocks is {}; it is a number from 1 to 10000", plan.blocks)));
    }
    let trials = plan.configurations.len().saturating_mul(plan.most_blocks() as usize);
    if trials > MOST_TRIALS {
        return Err(Usage(format!(
            "{} configurations in {} blocks are {trials} trials; one run has at most {MOST_TRIALS}",
            plan.configurations.len(),
            plan.most_blocks()
        )));
    }
    for (place, configuration) in plan.configurations.iter().enumerate() {
        each(configuration).map_err(|what| {
            Usage(format!("configurations, number {} ({}): {what}", place + 1, configuration.subject))
        })?;
    }
    Ok(())
}

fn each(configuration: &Configuration) -> Result<(), String> {
    within("size", configuration.size, 0..=LARGEST)?;
    let ends = [configuration.until.count, configuration.until.time_ns];
    if ends.iter().all(Option::is_none) || ends.contains(&Some(0)) {
        return Err("until needs a count or a time_ns above 0".to_owned());
    }
    within("until.count", configuration.until.count.unwrap_or(1), 1..=MOST_ROUNDS)?;
    let gaps = match &configuration.schedule {
        Some(Schedule::Recorded { gaps_ns }) => gaps_ns.iter().copied().max(),
        Some(Schedule::Between { longest_ns, .. }) => Some(*longest_ns),
        Some(Schedule::Exponential) | None => None,
    };
    let (spin_ns, timeout_ns) = match configuration.wait {
        WaitPolicy::SpinThenBlock { spin_ns } => (spin_ns, 0),
        WaitPolicy::Timeout { timeout_ns } => (0, timeout_ns),
        _ => (0, 0),
    };
    for (what, time) in [
        ("until.time_ns", configuration.until.time_ns.unwrap_or(0)),
        ("the pattern's gap", configuration.pattern.gap_ns()),
        ("the schedule's longest gap", gaps.unwrap_or(0)),
        ("spin_ns", spin_ns),
        ("timeout_ns", timeout_ns),
    ] {
        within(what, time, 0..=LONGEST_NS)?;
    }
    match configuration.wait {
        WaitPolicy::SpinThenBlock { spin_ns: 0 } => return Err("spin_ns is 0; wait is then block".to_owned()),
        WaitPolicy::Timeout { timeout_ns: 0 } => {
            return Err("timeout_ns is 0; to look without waiting is spin".to_owned());
        }
        _ => {}
    }
    match configuration.pattern {
        Pattern::FanOut { receivers, .. } => within("receivers", receivers, 1..=20_000)?,
        Pattern::Operation { batch } => within("batch", batch, 1..=1_000_000)?,
        Pattern::Tasks { tasks, yields } => {
            within("tasks", tasks, 2..=100_000)?;
            within("yields", yields, 0..=100_000)?;
        }
        Pattern::Io { .. } => {
            within("size", configuration.size, 512..=1 << 20)?;
            if !configuration.size.is_multiple_of(512) {
                return Err(format!("size is {}; a block is a multiple of 512 bytes", configuration.size));
            }
        }
        // A resident kernel leaves after 4 s, and a side that stands still for 5 s hangs.
        Pattern::Gpu { kernel_ns, up_to_ns, streams, .. } => {
            within("kernel_ns", kernel_ns, 0..=1_000_000_000)?;
            within("up_to_ns", up_to_ns.unwrap_or(kernel_ns), kernel_ns..=1_000_000_000)?;
            within("streams", streams, 1..=64)?;
        }
        Pattern::PingPong { .. } | Pattern::OneWay { .. } | Pattern::OpenLoop { .. } => {}
    }
    if let Some(Target::Created { bytes, passes, .. }) = configuration.target {
        within("the file's length", bytes, 1..=1 << 40)?;
        within("passes", passes, 0..=100)?;
    }
    if let Some(Trace::Worst { keep, .. }) = configuration.trace {
        within("keep", keep, 1..=100)?;
    }
    if let Some(limit) = configuration.latency_limit_us {
        within("latency_limit_us", limit, 0..=1_000_000)?;
    }
    if let Some(schedule) = &configuration.schedule {
        let Pattern::OpenLoop { gap_ns } = configuration.pattern else {
            return Err("schedule is for an open loop alone; leave it out".to_owned());
        };
        if let Some(fault) = schedule.fault(gap_ns) {
            return Err(format!("schedule: {fault}"));
        }
    }
    if let Some(beside) = configuration.beside {
        within("beside", beside, 0..=1000)?;
        let one_way = matches!(configuration.pattern, Pattern::OneWay { .. } | Pattern::OpenLoop { .. });
        if !one_way || !mechanism::find(&configuration.subject).is_ok_and(|entry| entry.in_a_set()) {
            return Err(format!(
                "beside is for one way and an open loop, of what stands in an epoll set with \
                 others; {} does not, or not so",
                configuration.subject
            ));
        }
    }
    if let Some(load) = &configuration.load {
        load::find(&load.kind).map_err(|unknown| unknown.to_string())?;
        let here = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        within("workers", load.workers, 1..=here.saturating_mul(WORKERS.0).max(WORKERS.1))?;
    }
    Ok(())
}

/// Two spinning sides on one core only measure the scheduler's time slice, and a waiter that never
/// sleeps cannot be proven asleep.
pub(super) fn makes_sense(configuration: &Configuration, one_cpu: bool) -> bool {
    let Ok(entry) = mechanism::find(&configuration.subject) else { return true };
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

fn within<T: PartialOrd + Display>(what: &str, number: T, bounds: RangeInclusive<T>) -> Result<(), String> {
    if bounds.contains(&number) {
        return Ok(());
    }
    Err(format!("{what} is {number}; it is a number from {} to {}", bounds.start(), bounds.end()))
}
