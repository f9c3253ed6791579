// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tells one configuration from another, in words: only what
//! differs becomes a column, the rest is said once.

use std::collections::HashMap;

use super::unit::{count, time};
use doorbell_results::configuration::{Configuration, Scheduler, Target, Timing, Trace, WaitPolicy};
use doorbell_results::record::subject::Contexts;
use doorbell_results::schedule::Schedule;

/// A relation of two CPUs as it is said: `same-l3` is "same L3", `smt-sibling` "SMT sibling".
pub fn relation(name: &str) -> String {
    let said = |word: &str| match word {
        "l2" | "l3" | "smt" => word.to_uppercase(),
        _ => word.to_owned(),
    };
    name.split('-').map(said).collect::<Vec<String>>().join(" ")
}

/// One thing in which configurations can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    Subject,
    Contexts,
    Pattern,
    Receivers,
    Tasks,
    /// How many turns each has.
    Yields,
    /// How long a kernel of a GPU works.
    Kernel,
    /// How many of them are waited for at once.
    Streams,
    Gap,
    Timing,
    Wait,
    Relation,
    Cpus,
    /// Bytes of message, or of a block.
    Size,
    /// What blocks are transferred to or from.
    Target,
    /// The wake-up latency that the kernel is asked to keep to.
    LatencyLimit,
    /// When notifications are due, where not at even times.
    Schedule,
    /// How many other descriptors stand in the waiter's epoll set.
    Beside,
    Scheduler,
    Batch,
    /// What keeps the machine busy meanwhile.
    Load,
    /// What of the kernel's events is recorded beside the stamps.
    Trace,
    Slowdown,
}

impl Axis {
    /// Every axis with the head of its column, in the order of the columns.
    const HEADS: [(Self, &'static str); 23] = [
        (Self::Subject, "mechanism"),
        (Self::Contexts, "between"),
        (Self::Pattern, "pattern"),
        (Self::Receivers, "receivers"),
        (Self::Tasks, "tasks"),
        (Self::Yields, "turns"),
        (Self::Kernel, "kernel"),
        (Self::Streams, "streams"),
        (Self::Gap, "gap"),
        (Self::Timing, "timing"),
        (Self::Wait, "wait"),
        (Self::Relation, "placement"),
        (Self::Cpus, "CPUs"),
        (Self::Size, "message"),
        (Self::Target, "target"),
        (Self::LatencyLimit, "latency limit"),
        (Self::Schedule, "schedule"),
        (Self::Beside, "beside"),
        (Self::Scheduler, "scheduler"),
        (Self::Batch, "batch"),
        (Self::Load, "load"),
        (Self::Trace, "traced"),
        (Self::Slowdown, "slowed on purpose"),
    ];

    /// Every axis, in the order of the columns.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::HEADS.into_iter().map(|(axis, _)| axis)
    }

    /// The head of its column.
    pub fn name(self) -> &'static str {
        Self::HEADS[self as usize].1
    }

    /// What `configuration` has on it; empty where it does not apply.
    pub fn value(self, configuration: &Configuration) -> String {
        match self {
            Self::Subject => configuration.subject.clone(),
            Self::Contexts => match configuration.contexts {
                Contexts::Processes => "processes".into(),
                Contexts::Threads => "threads".into(),
            },
            Self::Pattern => configuration.pattern.title().into(),
            Self::Receivers => optional(configuration.pattern.receivers()),
            Self::Tasks => optional(configuration.pattern.tasks().map(|(tasks, _)| tasks)),
            Self::Yields => optional(configuration.pattern.tasks().map(|(_, turns)| turns)),
            Self::Kernel => configuration.pattern.kernel_ns().map_or_else(String::new, between),
            Self::Streams => optional(configuration.pattern.streams()),
            Self::Gap
                if configuration.pattern.kernel_ns().is_some() && configuration.pattern.gap_ns() > 0 =>
            {
                nanoseconds(configuration.pattern.gap_ns())
            }
            Self::Gap | Self::Timing | Self::Wait if !configuration.pattern.notifies() => String::new(),
            Self::Gap if configuration.pattern.gap_ns() == 0 => "none".into(),
            Self::Gap => nanoseconds(configuration.pattern.gap_ns()),
            Self::Timing => match configuration.timing {
                Timing::Around => "around the wait".into(),
                Timing::Stamp => "stamped".into(),
                Timing::Blocked => "verified blocked".into(),
            },
            Self::Wait => match configuration.wait {
                WaitPolicy::Block => "block".into(),
                WaitPolicy::Spin => "spin".into(),
                WaitPolicy::SpinThenBlock { spin_ns } => format!("spin {} then block", nanoseconds(spin_ns)),
                WaitPolicy::Timeout { timeout_ns } => format!("timeout {}", nanoseconds(timeout_ns)),
            },
            Self::Relation => relation(&configuration.placement.relation),
            Self::Cpus => configuration
                .placement
                .cpus
                .map_or_else(|| "any".into(), |[first, second]| format!("{first},{second}")),
            Self::Size => match configuration.size {
                0 => "none".into(),
                bytes => format!("{} B", count(bytes.into())),
            },
            Self::Target => match &configuration.target {
                None => String::new(),
                Some(Target::Created { bytes, .. }) => format!("file of {} MiB", count(bytes >> 20)),
                Some(Target::File { path } | Target::Device { path, .. }) => path.display().to_string(),
            },
            Self::LatencyLimit => {
                configuration.latency_limit_us.map_or_else(String::new, |limit| format!("{limit} µs"))
            }
            Self::Schedule => configuration.schedule.as_ref().map_or_else(String::new, Schedule::title),
            Self::Beside => optional(configuration.beside),
            Self::Scheduler => match configuration.scheduler {
                Scheduler::Other => "other".into(),
                Scheduler::Fifo => "FIFO".into(),
                Scheduler::Deadline | Scheduler::Slice => configuration.scheduler.name().into(),
            },
            Self::Batch => optional(configuration.pattern.batch()),
            Self::Load => match &configuration.load {
                None => "idle".into(),
                Some(load) => {
                    let pinned = if load.pinned { " pinned" } else { "" };
                    format!("{} x {}{pinned}", load.kind, count(load.workers.into()))
                }
            },
            Self::Trace => match configuration.trace {
                None => String::new(),
                Some(Trace::Stages) => "stages".into(),
                Some(Trace::Worst { .. }) => "causes".into(),
            },
            Self::Slowdown => configuration
                .injected_slowdown_ppm
                .map_or_else(String::new, |ppm| format!("{} %", f64::from(ppm) / 10_000.0)),
        }
    }
}

fn optional(number: Option<u32>) -> String {
    number.map_or_else(String::new, |number| count(number.into()))
}

fn between([least, most]: [u64; 2]) -> String {
    if least == most { nanoseconds(least) } else { format!("{}..{}", nanoseconds(least), nanoseconds(most)) }
}

fn nanoseconds(ns: u64) -> String {
    time(ns as f64 * 1e3)
}

/// The axes on which `configurations` differ; the subject always, so that every row has a name.
///
/// The CPUs are left out where the placement already tells them apart.
pub fn varying<'a>(configurations: impl Iterator<Item = &'a Configuration> + Clone) -> Vec<Axis> {
    let differs = |axis: Axis| {
        let mut values = configurations.clone().map(|configuration| axis.value(configuration));
        values.next().is_some_and(|first| values.any(|value| value != first))
    };
    let mut axes: Vec<Axis> = Axis::all().filter(|axis| *axis == Axis::Subject || differs(*axis)).collect();
    // Whether a transfer takes a second CPU follows from the way it is waited for.
    if configurations.clone().all(|configuration| configuration.pattern.transfers().is_some()) {
        axes.retain(|axis| !matches!(axis, Axis::Relation | Axis::Cpus));
    }
    let told_by_relation = || {
        let mut known = HashMap::new();
        configurations.clone().all(|configuration| {
            let cpus = Axis::Cpus.value(configuration);
            *known.entry(Axis::Relation.value(configuration)).or_insert_with(|| cpus.clone()) == cpus
        })
    };
    if axes.contains(&Axis::Relation) && axes.contains(&Axis::Cpus) && told_by_relation() {
        axes.retain(|axis| *axis != Axis::Cpus);
    }
    axes
}

/// Of configurations that differ in `varying`, on each axis in as many ways as `values` says: what
/// tells those of one group apart, which is the subject if there are several, else what differs
/// most, and what those of one group have in common.
pub fn groups(varying: &[Axis], values: impl Fn(Axis) -> usize) -> [Vec<Axis>; 2] {
    let apart = match values(Axis::Subject) > 1 {
        true => Some(Axis::Subject),
        false => varying.iter().copied().max_by_key(|axis| values(*axis)),
    };
    let other = |axis: &Axis| Some(*axis) != apart && *axis != Axis::Subject;
    let names = std::iter::once(Axis::Subject).chain(apart.filter(|axis| *axis != Axis::Subject));
    [names.collect(), varying.iter().copied().filter(other).collect()]
}

/// What all `configurations` have in common, as "gap none, wait block"; what is at its default and
/// says nothing is left out.
pub fn common<'a>(configurations: impl Iterator<Item = &'a Configuration> + Clone) -> String {
    let varying = varying(configurations.clone());
    let Some(first) = configurations.clone().next() else { return String::new() };
    Axis::all()
        .filter(|axis| !varying.contains(axis) && (*axis != Axis::Cpus || first.placement.cpus.is_some()))
        .filter(|axis| *axis != Axis::Load || first.load.is_some())
        .filter(|axis| {
            configurations.clone().all(|configuration| axis.value(configuration) == axis.value(first))
        })
        .map(|axis| (axis, axis.value(first)))
        .filter(|(_, value)| !value.is_empty())
        .map(|(axis, value)| format!("{} {value}", axis.name()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The name of one configuration among others that differ on `axes`.
pub fn label(configuration: &Configuration, axes: &[Axis]) -> String {
    axes.iter()
        .map(|axis| match axis {
            Axis::Subject | Axis::Contexts | Axis::Pattern | Axis::Timing | Axis::Relation => {
                axis.value(configuration)
            }
            Axis::Wait => axis.value(configuration),
            other => {
                let value = other.value(configuration);
                if value.is_empty() { value } else { format!("{} {value}", other.name()) }
            }
        })
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(" · ")
}
