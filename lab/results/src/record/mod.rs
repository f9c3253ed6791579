// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one trial leaves: a lossless histogram per series, counters
//! and warnings; never a bare mean.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::anatomy::Anatomy;
use crate::configuration::Configuration;
use crate::machine::cpu_list::CpuList;

pub mod change;
mod check;
mod cpu;
mod encoded;
pub mod fanout;
pub mod fio;
pub mod histogram;
pub mod io;
pub mod load;
pub mod need;
pub mod populations;
pub mod question;
pub mod rank;
pub mod read;
pub mod result;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
mod scan;
pub mod schema;
pub mod series;
pub mod slice;
pub mod subject;
pub mod variant;
pub mod verdict;
pub mod warning;
pub mod within_grid;
pub mod write;

pub use histogram::Histogram;
pub use result::ResultFile;
pub use series::{Quantity, Series};
pub use slice::Slice;
pub use subject::Subject;
pub use variant::Variant;

use warning::{CPU_STEAL, INTERFERENCE, THROTTLED};

/// The result of one trial.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Record {
    /// Which configuration was run.
    pub configuration: Configuration,
    /// What its subject was, as the build that ran it knew it.
    pub subject: Subject,
    /// The block it belongs to: trials of one block are run close together, in random order,
    /// between the same primitive costs. On the bench the life of two sides, in which all
    /// configurations take turns.
    pub block: u32,
    /// Tries it took: more than one when an earlier try met interference.
    pub attempts: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Times, by the name of the quantity: see [`series::Quantity`].
    pub series: BTreeMap<series::Quantity, Series>,
    /// Single figures beside the series, such as what another tool's formula makes of the same run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// What it did each time it was its turn between two resident
    /// sides; none where it had a trial of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "slice")]
    #[cfg_attr(test, schemars(with = "slice::Columns"))]
    pub slices: Vec<Slice>,
    /// Each round and each receiver of a fan-out.
    pub fanout: Option<fanout::FanOut>,
    /// What the device and the kernel counted while blocks were transferred.
    pub io: Option<io::Io>,
    /// Notifications, by sequence number.
    pub tally: Tally,
    /// The two sides: initiator or notifier first.
    pub sides: Vec<SideCounters>,
    /// The proof that the load the configuration asks for was there.
    pub load: Option<load::LoadProof>,
    /// Where the time of its wake-ups went, where the kernel's events
    /// were recorded beside the stamps.
    pub anatomy: Option<Anatomy>,
    /// What else went on while it ran.
    pub environment: Environment,
    /// What the reader must know about this record.
    pub warnings: Vec<Warning>,
}

impl Record {
    /// Whether others took more of the measured CPUs than a trial can bear, to its last try.
    pub fn had_interference(&self) -> bool {
        self.warnings
            .iter()
            .any(|warning| [INTERFERENCE, CPU_STEAL, THROTTLED].iter().any(|kind| kind.name == warning.name))
    }

    /// Whether the system told what others took: where it tells nothing, no warning says nothing.
    pub fn tells_interference(&self) -> bool {
        let Environment { foreign_share, steal_share, .. } = &self.environment;
        foreign_share.is_some() || steal_share.is_some() || self.had_interference()
    }
}

/// One number with its name, unit and formula.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Figure {
    /// Its name: `timectxsw as printed`, `per real switch`, …
    pub name: String,
    /// The number, finite.
    pub value: f64,
    /// Its unit: `ns`, `1/s`, `count`, …
    pub unit: String,
    /// How it was computed.
    pub formula: String,
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Outcome {
    /// It ran to its end and its figures may be used.
    Done,
    /// It was not run: the machine lacks something.
    Skipped {
        /// What is lacking.
        reason: String,
    },
    /// It ran to its end and its figures may not be used.
    Implausible {
        /// Each rule it broke, with the values.
        violations: Vec<Violation>,
    },
    /// A side stopped making progress.
    Hung {
        /// Which side, at which step, at which sequence number.
        last_seen: Vec<LastSeen>,
    },
    /// A side failed or was killed.
    Failed {
        /// What happened.
        cause: String,
    },
    /// The run was interrupted before the trial ended; what was measured is kept.
    Partial,
}

impl Outcome {
    /// Whether its figures may be used.
    pub fn is_usable(&self) -> bool {
        matches!(self, Self::Done | Self::Partial)
    }

    /// Whether the trial measured something, be it cut short or what cannot be true.
    pub fn measured(&self) -> bool {
        match self {
            Self::Done | Self::Implausible { .. } | Self::Partial => true,
            Self::Skipped { .. } | Self::Hung { .. } | Self::Failed { .. } => false,
        }
    }
}

/// A rule of plausibility that a record broke: an error by name, never a figure in a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Violation {
    /// The rule's name: `below-primitive-cost`, `longer-than-run`, `never-slept`,
    /// `poll-took-interrupts`, …
    pub rule: String,
    /// The values that break it.
    pub evidence: String,
}

/// Where a side was when the watchdog looked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LastSeen {
    /// `initiator`, `responder`, `notifier`, `waiter`.
    pub side: String,
    /// The last step it entered: `waits`, `notifies`, `pauses`, …
    pub step: String,
    /// The sequence number it was at.
    pub sequence: u64,
}

impl fmt::Display for LastSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} {} at number {}", self.side, self.step, self.sequence)
    }
}

/// Notifications counted by sequence number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tally {
    /// Sent by the notifiers. In slices one or two more in each than
    /// were timed: the counters of both sides cover them.
    pub sent: u64,
    /// Seen by the waiters, whatever woke them.
    pub seen: u64,
    /// Never seen.
    pub lost: u64,
    /// Seen only because a timed wait ran out.
    pub late: u64,
    /// Wake-ups for a number seen before.
    pub duplicate: u64,
    /// Wake-ups with nothing behind them.
    pub spurious: u64,
    /// Seen together with a later one, by one wake-up.
    pub merged: u64,
    /// Timed waits that ran out with nothing to see.
    pub timeouts: u64,
    /// Rounds run before recording began.
    pub warmup: u64,
    /// Notifications sent while the waiter was proven asleep.
    pub proven_asleep: u64,
}

/// What the kernel counted for one side during the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SideCounters {
    /// `initiator`, `responder`, `notifier`, `waiter`.
    pub side: String,
    /// CPUs it was seen on at the start and the end.
    pub cpus: Vec<u32>,
    /// Moves between CPUs, where the kernel tells.
    pub migrations: Option<u64>,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Page faults without input or output.
    pub minor_faults: u64,
    /// Page faults that read a disk.
    pub major_faults: u64,
    /// CPU time in user mode, nanoseconds. The sum with `system_ns` is exact; how it is split
    /// between the two is what the scheduler's tick happened to see (`cputime_adjust` in Linux
    /// kernel/sched/cputime.c).
    pub user_ns: u64,
    /// CPU time in the kernel, nanoseconds; see `user_ns`.
    pub system_ns: u64,
    /// Length of the measured window by this side's clock, nanoseconds; for the receivers of a
    /// fan-out together, the sum of theirs.
    pub window_ns: u64,
    /// CPU time of one of its calls that notify, nanoseconds: the mean of a sample of them, in
    /// which none counts more than it lasted. Of a notifier that keeps a gap, where the system
    /// tells CPU time finely enough.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub call_ns: Option<f64>,
    /// Time for which something held it up: how much later than due it notified, of all times that
    /// it was later by more than a millisecond, nanoseconds. Of a notifier that keeps a gap in a
    /// closed loop.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub held_up_ns: Option<u64>,
    /// Whether the system tells neither switches nor faults: both are zero then, and say nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub uncounted: bool,
}

/// What else went on while a trial ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Environment {
    /// Wall-clock start, nanoseconds since 1970.
    pub started_at_unix_ns: u64,
    /// Length of the trial, set-up included, nanoseconds.
    pub wall_ns: u64,
    /// The measured CPUs: the placement's, or all usable ones where the scheduler decided.
    pub cpus: CpuList,
    /// CPU time used by anything else on the measured CPUs, as a share of one CPU.
    pub foreign_share: Option<f64>,
    /// How far it may be off; where the kernel counts in ticks as far as `share_resolution` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_resolution: Option<f64>,
    /// The task that used most of it, where the kernel tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest: Option<String>,
    /// Time the hypervisor took from the measured CPUs, as a share of one CPU.
    pub steal_share: Option<f64>,
    /// How far shares that the kernel counts in ticks of 10 ms may be off.
    pub share_resolution: Option<f64>,
    /// Time in which some runnable task of the machine waited for a CPU, as a share of the trial's;
    /// the trial's own sides count, where they share a core.
    pub pressure_share: Option<f64>,
    /// Tasks of the machine that ran or wanted to, averaged over the minute before the trial's end.
    pub load_average: Option<f64>,
    /// Time for which this process's control group, or one above it, had used up its quota,
    /// nanoseconds, of all CPUs together.
    pub throttled_ns: Option<u64>,
    /// Share of the trial's time that the measured CPUs spent in each idle state, by its name;
    /// empty where the kernel shows none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub idle_states: BTreeMap<String, f64>,
    /// How often the measured CPUs entered each idle state; empty where the kernel does not count.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub idle_entries: BTreeMap<String, u64>,
    /// Interrupts on the measured CPUs, by the kernel's short name
    /// (`RES`, `LOC`, `CAL`, …) or `device`.
    pub interrupts: BTreeMap<String, u64>,
}

/// A warning is part of the result: its name, what it did to this run, and the cure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Warning {
    /// A short name, the same for the same cause: `interference`,
    /// `primitive-costs-drifted`, `bimodal`, …
    pub name: String,
    /// What was seen, with values.
    pub cause: String,
    /// What it did to this run.
    pub effect: String,
    /// What to do about it.
    pub cure: String,
}
