// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tells one cell from another, in words: only what differs becomes a column, the rest is said once.

use std::collections::HashMap;

use super::unit::{count, time};
use doorbell_results::cell::{Cell, Direction, Pattern, Scheduler, Target, Timing, Trace, WaitPolicy};
use doorbell_results::record::subject::Contexts;

/// A relation of two CPUs as it is said: `same-l3` is "same L3", `smt-sibling` "SMT sibling".
pub fn relation(name: &str) -> String {
    let said = |word: &str| match word {
        "l2" | "l3" | "smt" => word.to_uppercase(),
        _ => word.to_owned(),
    };
    name.split('-').map(said).collect::<Vec<String>>().join(" ")
}

/// One thing in which cells can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    Subject,
    Contexts,
    Pattern,
    /// How many receivers are woken.
    Receivers,
    /// How many tasks there are.
    Tasks,
    /// How many turns each has.
    Yields,
    Gap,
    Timing,
    Wait,
    /// The relation of the CPUs.
    Relation,
    Cpus,
    /// Bytes of message, or of a block.
    Size,
    /// What blocks are transferred to or from.
    Target,
    /// The wake-up latency that the kernel is asked to keep to.
    LatencyLimit,
    /// How the sides are scheduled.
    Scheduler,
    Batch,
    /// What keeps the machine busy meanwhile.
    Load,
    /// What of the kernel's events is recorded beside the stamps.
    Trace,
    /// A slowdown put in on purpose.
    Slowdown,
    /// Whether trials stopped for the yardstick.
    Yardstick,
}

impl Axis {
    /// Every axis, in the order of the columns.
    pub const ALL: [Self; 20] = [
        Self::Subject,
        Self::Contexts,
        Self::Pattern,
        Self::Receivers,
        Self::Tasks,
        Self::Yields,
        Self::Gap,
        Self::Timing,
        Self::Wait,
        Self::Relation,
        Self::Cpus,
        Self::Size,
        Self::Target,
        Self::LatencyLimit,
        Self::Scheduler,
        Self::Batch,
        Self::Load,
        Self::Trace,
        Self::Slowdown,
        Self::Yardstick,
    ];

    /// The head of its column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Subject => "mechanism",
            Self::Contexts => "between",
            Self::Pattern => "pattern",
            Self::Receivers => "receivers",
            Self::Tasks => "tasks",
            Self::Yields => "turns",
            Self::Gap => "gap",
            Self::Timing => "timing",
            Self::Wait => "wait",
            Self::Relation => "placement",
            Self::Cpus => "CPUs",
            Self::Size => "message",
            Self::Target => "target",
            Self::LatencyLimit => "latency limit",
            Self::Scheduler => "scheduler",
            Self::Batch => "batch",
            Self::Load => "load",
            Self::Trace => "traced",
            Self::Slowdown => "slowed on purpose",
            Self::Yardstick => "yardstick",
        }
    }

    /// What `cell` has on it; empty where it does not apply.
    pub fn value(self, cell: &Cell) -> String {
        match self {
            Self::Subject => cell.subject.clone(),
            Self::Contexts => match cell.contexts {
                Contexts::Processes => "processes".into(),
                Contexts::Threads => "threads".into(),
            },
            Self::Pattern => match cell.pattern {
                Pattern::PingPong { .. } => "ping-pong".into(),
                Pattern::OneWay { .. } => "one way".into(),
                Pattern::OpenLoop { .. } => "open loop".into(),
                Pattern::FanOut { .. } => "fan-out".into(),
                Pattern::Operation { .. } => "operation".into(),
                Pattern::Tasks { yields: 0, .. } => "lives".into(),
                Pattern::Tasks { .. } => "hand-offs".into(),
                Pattern::Io { direction: Direction::Read, .. } => "read".into(),
                Pattern::Io { direction: Direction::Write, .. } => "write".into(),
            },
            Self::Receivers => match cell.pattern {
                Pattern::FanOut { receivers, .. } => count(receivers.into()),
                _ => String::new(),
            },
            Self::Tasks => match cell.pattern {
                Pattern::Tasks { tasks, .. } => count(tasks.into()),
                _ => String::new(),
            },
            Self::Yields => match cell.pattern {
                Pattern::Tasks { yields, .. } => count(yields.into()),
                _ => String::new(),
            },
            Self::Gap => match cell.pattern {
                Pattern::Operation { .. } | Pattern::Tasks { .. } | Pattern::Io { .. } => String::new(),
                pattern if pattern.gap_ns() == 0 => "none".into(),
                pattern => nanoseconds(pattern.gap_ns()),
            },
            Self::Timing => match (cell.pattern, cell.timing) {
                (Pattern::Operation { .. } | Pattern::Tasks { .. } | Pattern::Io { .. }, _) => String::new(),
                (_, Timing::Around) => "around the wait".into(),
                (_, Timing::Stamp) => "stamped".into(),
                (_, Timing::Blocked) => "surely blocked".into(),
            },
            Self::Wait => match (cell.pattern, cell.wait) {
                (Pattern::Operation { .. } | Pattern::Tasks { .. } | Pattern::Io { .. }, _) => String::new(),
                (_, WaitPolicy::Block) => "block".into(),
                (_, WaitPolicy::Spin) => "spin".into(),
                (_, WaitPolicy::SpinThenBlock { spin_ns }) => {
                    format!("spin {} then block", nanoseconds(spin_ns))
                }
                (_, WaitPolicy::Timeout { timeout_ns }) => format!("timeout {}", nanoseconds(timeout_ns)),
            },
            Self::Relation => relation(&cell.placement.relation),
            Self::Cpus => cell
                .placement
                .cpus
                .map_or_else(|| "any".into(), |[first, second]| format!("{first},{second}")),
            Self::Size => match cell.size {
                0 => "none".into(),
                bytes => format!("{} B", count(bytes.into())),
            },
            Self::Target => match &cell.target {
                None => String::new(),
                Some(Target::Created { bytes, .. }) => format!("file of {} MiB", count(bytes >> 20)),
                Some(Target::File { path } | Target::Device { path, .. }) => path.display().to_string(),
            },
            Self::LatencyLimit => {
                cell.latency_limit_us.map_or_else(String::new, |limit| format!("{limit} µs"))
            }
            Self::Scheduler => match cell.scheduler {
                Scheduler::Other => "other".into(),
                Scheduler::Fifo => "FIFO".into(),
            },
            Self::Batch => match cell.pattern {
                Pattern::Operation { batch } => count(batch.into()),
                _ => String::new(),
            },
            Self::Load => match &cell.load {
                None => "idle".into(),
                Some(load) => {
                    let pinned = if load.pinned { " pinned" } else { "" };
                    format!("{} x {}{pinned}", load.kind, count(load.workers.into()))
                }
            },
            Self::Trace => match cell.trace {
                None => String::new(),
                Some(Trace::Stages) => "stages".into(),
                Some(Trace::Worst { .. }) => "causes".into(),
            },
            Self::Slowdown => cell
                .injected_slowdown_ppm
                .map_or_else(String::new, |ppm| format!("{} %", f64::from(ppm) / 10_000.0)),
            Self::Yardstick => if cell.without_yardstick { "without" } else { "with" }.into(),
        }
    }
}

fn nanoseconds(ns: u64) -> String {
    time(ns as f64 * 1e3)
}

/// The axes on which `cells` differ; the subject always, so that every row has a name.
///
/// The CPUs are left out where the placement already tells them apart.
pub fn varying<'a>(cells: impl Iterator<Item = &'a Cell> + Clone) -> Vec<Axis> {
    let differs = |axis: Axis| {
        let mut values = cells.clone().map(|cell| axis.value(cell));
        values.next().is_some_and(|first| values.any(|value| value != first))
    };
    let mut axes: Vec<Axis> =
        Axis::ALL.into_iter().filter(|axis| *axis == Axis::Subject || differs(*axis)).collect();
    // Whether a transfer takes a second CPU follows from the way it is waited for.
    if cells.clone().all(|cell| matches!(cell.pattern, Pattern::Io { .. })) {
        axes.retain(|axis| !matches!(axis, Axis::Relation | Axis::Cpus));
    }
    let told_by_relation = || {
        let mut known = HashMap::new();
        cells.clone().all(|cell| {
            let cpus = Axis::Cpus.value(cell);
            *known.entry(Axis::Relation.value(cell)).or_insert_with(|| cpus.clone()) == cpus
        })
    };
    if axes.contains(&Axis::Relation) && axes.contains(&Axis::Cpus) && told_by_relation() {
        axes.retain(|axis| *axis != Axis::Cpus);
    }
    axes
}

/// What all `cells` have in common, as "gap none, wait block"; what is at its default and says nothing is left out.
pub fn common<'a>(cells: impl Iterator<Item = &'a Cell> + Clone) -> String {
    let varying = varying(cells.clone());
    let Some(first) = cells.clone().next() else { return String::new() };
    Axis::ALL
        .into_iter()
        .filter(|axis| !varying.contains(axis) && (*axis != Axis::Cpus || first.placement.cpus.is_some()))
        .filter(|axis| *axis != Axis::Load || first.load.is_some())
        .filter(|axis| cells.clone().all(|cell| axis.value(cell) == axis.value(first)))
        .map(|axis| (axis, axis.value(first)))
        .filter(|(_, value)| !value.is_empty())
        .map(|(axis, value)| format!("{} {value}", axis.name()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The name of one cell among others that differ on `axes`.
pub fn label(cell: &Cell, axes: &[Axis]) -> String {
    axes.iter()
        .map(|axis| match axis {
            Axis::Subject | Axis::Contexts | Axis::Pattern | Axis::Timing | Axis::Relation => {
                axis.value(cell)
            }
            Axis::Wait => axis.value(cell),
            other => {
                let value = other.value(cell);
                if value.is_empty() { value } else { format!("{} {value}", other.name()) }
            }
        })
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(" · ")
}
