// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trial's host is told, and what it says.

#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::time::Duration;

use doorbell_results::anatomy::Anatomy;
use doorbell_results::configuration::Configuration;
use doorbell_results::machine::clock::Clock;
use doorbell_results::record::LastSeen;
use doorbell_results::record::load::LoadProof;
use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
use crate::any_path;
use crate::side::SideReport;

/// What a host is told on its standard input, as one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// What to run.
    pub configuration: Configuration,
    /// The clock of the run.
    pub clock: Clock,
    /// The run's folder.
    #[cfg(target_os = "linux")]
    #[serde(with = "any_path")]
    pub run_dir: PathBuf,
    #[cfg(target_os = "linux")]
    /// The number under which the folder's lock was inherited.
    pub lock: i32,
    #[cfg(target_os = "linux")]
    /// The process that gave the order; without it the trial is nobody's.
    pub parent: u32,
}

/// What a host says on its standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// Both sides came home, perhaps early because of an interrupt.
    Done {
        /// Their reports, the one that notifies first at the front.
        sides: Vec<SideReport>,
        /// Whether the user interrupted.
        interrupted: bool,
        /// The proof that the load asked for was there.
        load: Option<LoadProof>,
        /// Where the time of its wakes went, where the kernel's events were recorded.
        #[serde(default)]
        anatomy: Option<Box<Anatomy>>,
    },
    /// Nothing moved any more.
    Hung {
        /// Where each side was.
        last_seen: Vec<LastSeen>,
    },
    /// It could not be run, or a side died.
    Failed {
        /// What happened.
        cause: String,
    },
}

/// Time to make one side's report, on top of that: 0.03 to 0.2 s in a debug build on a busy machine, fifty times as long on
/// an emulated CPU, and ten times that where others want it, too.
pub(crate) const REPORT: Duration = Duration::from_secs(100);
