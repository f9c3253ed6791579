// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the time of a wake-up goes: the kernel's events and the
//! instrument's stamps, joined and cut into stages.
//!
//! ```text
//! stamps ─┐
//! events ─┴─► cut (one wake-up: marks in order) ─► collect (paths, distributions, the wake-ups worth showing)
//! ```
//!
//! A stage is the time between two marks that a wake-up passed one after the other, so the stages
//! of a wake-up always add up to the whole. A mark that was not seen is left out, and its time
//! belongs to the stage that ends at the next one: nothing is guessed. What a kernel does not tell
//! is named: kinds of event that it lacks, and CPUs that leave some out (`untold`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::record::Series;

pub mod mark;
pub mod program;
#[cfg(any(test, feature = "sample"))]
pub mod sample;

pub use mark::Mark;
pub use program::Program;

/// What a traced trial leaves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Anatomy {
    /// Marks that this kernel does not show at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<Hidden>,
    /// How many wake-ups there were and what became of them.
    pub counts: Counts,
    /// The ways that wake-ups took, the most frequent first.
    pub paths: Vec<Path>,
    /// Wake-ups that are kept whole.
    pub kept: Vec<Wake>,
    /// Who woke whom in a program of the user's, which was watched and not run by us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
}

/// A mark that this kernel does not show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Hidden {
    /// The mark.
    pub mark: Mark,
    /// What the kernel lacks for it.
    pub why: String,
}

/// Wake-ups, by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counts {
    /// Stamped by both sides after the warm-up.
    pub stamped: u64,
    /// Cut into stages.
    pub cut: u64,
    /// Left out because events of their time were overwritten.
    pub incomplete: u64,
    /// Left out because one wake-up brought several messages, or a
    /// message came without a wake-up of its own.
    pub merged: u64,
    /// Events that were overwritten.
    pub lost_events: u64,
    /// Wake-ups longer than the threshold asked for, kept or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<u64>,
}

/// A way that wake-ups took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Path {
    /// The marks that each of them passed, in order.
    pub marks: Vec<Mark>,
    /// Whether the waiter came to run on another CPU than the one from which it was woken.
    pub across: bool,
    /// The time up to each mark but the first, since the mark before it.
    pub stages: BTreeMap<Mark, Series>,
    /// From the first mark to the last.
    pub whole: Series,
}

impl Path {
    pub fn series(&self) -> impl Iterator<Item = &Series> {
        self.stages.values().chain(std::iter::once(&self.whole))
    }
}

/// Why a wake-up is kept whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    /// As many wake-ups of its trial were quicker as were slower.
    Median,
    /// One in a hundred was slower.
    P99,
    /// None was slower, or only those that are kept too.
    Worst,
}

/// A wake-up that is kept whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Wake {
    /// Why it is kept.
    pub rank: Rank,
    /// Its message's number.
    pub sequence: u64,
    /// The notifier's task and the waiter's.
    pub tasks: [i32; 2],
    /// The marks it passed, in order, the notifier's stamp being 0.
    pub marks: Vec<Passed>,
    /// Whether the waiter came to run on another CPU than the one from which it was woken.
    pub across: bool,
    /// Whether it was not the notification that ended the wait, but its time-out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rescued: bool,
    /// What the kernel told of its time, and the last of each CPU from before it.
    pub events: Vec<Event>,
    /// Events of its time that are not in the list, which holds so many at most.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub events_left_out: u64,
    /// What the machine counted around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meanwhile: Option<Meanwhile>,
}

impl Wake {
    /// From the first mark to the last, picoseconds.
    pub fn whole_ps(&self) -> u64 {
        let end = self.marks.last().map_or(0, |passed| passed.at_ps);
        end.saturating_sub(self.marks.first().map_or(0, |passed| passed.at_ps)).max(0).unsigned_abs()
    }

    /// When it passed `mark`, if it was seen to.
    pub fn at(&self, mark: Mark) -> Option<i64> {
        self.marks.iter().find(|passed| passed.mark == mark).map(|passed| passed.at_ps)
    }

    /// Its stages: the mark that ends each, when it began and when it ended, picoseconds.
    pub fn stages(&self) -> impl Iterator<Item = (Mark, i64, i64)> + '_ {
        self.marks.windows(2).map(|pair| (pair[1].mark, pair[0].at_ps, pair[1].at_ps))
    }
}

/// A mark that a wake-up passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Passed {
    /// The mark.
    pub mark: Mark,
    /// When, picoseconds since the notifier's stamp.
    pub at_ps: i64,
    /// On which CPU, where an event told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
}

/// What the machine counted from its last reading until the wake-up was caught.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Meanwhile {
    /// How long before it was caught the last reading was, nanoseconds.
    pub window_ns: u64,
    /// Time that the hypervisor took from each CPU, nanoseconds, in steps of the kernel's tick.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steal_ns: BTreeMap<u32, u64>,
    /// Periods in which the control group was stopped for want of quota.
    pub throttled_periods: Option<u64>,
    /// For how long, nanoseconds.
    pub throttled_ns: Option<u64>,
}
