// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trial's host is told, and what it says.

use std::path::PathBuf;
use std::time::Duration;

use doorbell_results::anatomy::Anatomy;
use doorbell_results::configuration::Configuration;
use doorbell_results::machine::clock::Clock;
use doorbell_results::record::LastSeen;
use doorbell_results::record::load::LoadProof;
use serde::{Deserialize, Serialize};

use crate::any_path;
use crate::in_turn::Section;
use crate::side::SideReport;

/// What a host is told on its standard input, as one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub task: Task,
    pub clock: Clock,
    #[serde(with = "any_path")]
    pub run_dir: PathBuf,
    /// The number under which the folder's lock was inherited.
    pub lock: i32,
    /// The process that gave the order; without it the trial is nobody's.
    pub parent: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    Trial(Box<Configuration>),
    /// Several in turns between the same two sides.
    Bench(Bench),
    /// Several one after another between the same two sides, each to its end.
    OneByOne(Vec<Configuration>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bench {
    /// All of one kind of sides; each until its own end.
    pub configurations: Vec<Configuration>,
    /// Which follow one another, by place.
    pub turns: Vec<Vec<u32>>,
    pub cut: Cut,
    /// After how many nanoseconds nothing has another turn that had
    /// one; none where each goes on to its own end.
    pub time_ns: Option<u64>,
    /// Of the order.
    pub seed: u64,
    /// Where another program takes turns with this one, slice by slice.
    #[serde(default)]
    pub in_turn: Option<Section>,
}

/// How the time of two sides is cut into slices, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// A slice, its head included.
    pub slice_ns: u64,
    /// What of it is not recorded.
    pub head_ns: u64,
    /// What is not recorded where another class begins.
    pub washout_ns: u64,
}

/// What a host says on its standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// Both sides came home, perhaps early because of an interrupt.
    Done {
        /// Their reports, the one that notifies first at the front.
        sides: Vec<SideReport>,
        interrupted: bool,
        /// The proof that the load asked for was there.
        load: Option<LoadProof>,
        /// Where the time of its wakes went, where the kernel's events were recorded.
        #[serde(default)]
        anatomy: Option<Box<Anatomy>>,
    },
    /// Both sides of several configurations came home, perhaps early because of an interrupt.
    Sliced { came: Vec<Sliced>, interrupted: bool },
    /// Nothing moved any more.
    Hung {
        last_seen: Vec<LastSeen>,
        /// Of several the place of the configuration whose turn it was.
        #[serde(default)]
        at: Option<u32>,
    },
    Failed {
        cause: String,
        #[serde(default)]
        at: Option<u32>,
    },
}

impl Report {
    /// Of several configurations, in which it hung or failed.
    pub(crate) fn at(self, at: Option<u32>) -> Self {
        match self {
            Self::Hung { last_seen, .. } => Self::Hung { last_seen, at },
            Self::Failed { cause, .. } => Self::Failed { cause, at },
            other => other,
        }
    }
}

/// What came of a configuration on a bench.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sliced {
    /// The reports of both sides, the one that notifies first at the
    /// front; none of one whose turn had not come.
    Sides {
        sides: Vec<SideReport>,
    },
    NotOpened {
        cause: String,
    },
}

/// Time to make one side's report, on top of that: 0.03 to 0.2 s in a debug build on a busy
/// machine, fifty times as long on an emulated CPU, and ten times that where others want it, too.
pub(crate) const REPORT: Duration = Duration::from_secs(100);
