// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result file: one run, one JSON document, the truth from which everything else follows.

use super::question::Baseline;
use serde::{Deserialize, Serialize};

use super::slice::{self, Slice};
use super::verdict::Verdict;
use super::{Record, Warning};
use crate::configuration::Configuration;
use crate::machine::Machine;
use crate::plan::Plan;

/// The version of the layout; a reader refuses any other and says so.
pub const SCHEMA_VERSION: u32 = 2;

/// One run.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ResultFile {
    /// See [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of the program that wrote it.
    pub tool_version: String,
    /// The command line, as it was typed.
    pub command_line: Vec<String>,
    /// A name given with `--name`, for comparisons.
    pub name: Option<String>,
    /// Start, nanoseconds since 1970.
    pub started_at_unix_ns: u64,
    /// End, nanoseconds since 1970.
    pub finished_at_unix_ns: u64,
    /// Whether the user interrupted: not every trial of the plan is there.
    pub partial: bool,
    /// What it ran on.
    pub machine: Machine,
    /// What was to be run.
    pub plan: Plan,
    /// The machine's primitive costs, before each block of trials and after the last.
    pub primitives: Vec<Primitives>,
    /// What it said when it was written; the answer of another build may be better.
    pub verdict: Option<Verdict>,
    /// What came of it, in the order of execution.
    pub records: Vec<Record>,
    /// What took turns with configurations that had nobody else to take turns with: by it runs of
    /// other times are compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Beside>,
    /// What the reader must know about the whole run.
    pub warnings: Vec<Warning>,
}

impl ResultFile {
    /// All readings of one primitive cost.
    pub fn primitives_called(&self, name: &str) -> impl Iterator<Item = &Primitive> {
        let all = self.primitives.iter().flat_map(|reading| &reading.primitives);
        all.filter(move |primitive| primitive.name == name)
    }

    /// Whether `subject` was the harness alone, with nothing to measure in it.
    pub fn is_harness(&self, subject: &str) -> bool {
        self.records
            .iter()
            .any(|record| record.configuration.subject == subject && record.subject.is_harness())
    }

    /// Whether it was measured where instructions are translated by
    /// software: its times are then no machine's.
    pub fn emulated(&self) -> bool {
        self.machine.virtualisation.emulated
    }

    /// The word that goes with every unit where times are not those of the machine and its system:
    /// `emulated`, or `wine` where Wine answered for Windows.
    pub fn mark(&self) -> Option<&'static str> {
        let stand_in = self.machine.kernel.stand_in.as_ref().map(|_| "wine");
        if self.emulated() { Some("emulated") } else { stand_in }
    }
}

/// What one configuration that was not asked for did between two resident sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Beside {
    /// What was run.
    pub configuration: Configuration,
    /// The block, which is the life of the two sides.
    pub block: u32,
    /// What it did each time it was its turn.
    #[serde(with = "slice")]
    #[cfg_attr(test, schemars(with = "slice::Columns"))]
    pub slices: Vec<Slice>,
}

/// The machine's primitive costs at one moment: the costs of which
/// every wake-up is a small multiple.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Primitives {
    /// Measured just before this block; the number of blocks for the reading after the last.
    pub block: u32,
    /// Wall-clock time of the reading, nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// Each primitive cost that this machine has.
    pub primitives: Vec<Primitive>,
}

/// One primitive cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Primitive {
    /// `clock`, `system-call`, `cache-line-hop`, `same-core-switch`,
    /// `wake-nobody`, `two-core-wake`.
    pub name: String,
    /// Median, nanoseconds.
    pub p50_ns: f64,
    /// Shortest, nanoseconds.
    pub min_ns: f64,
    /// Samples.
    pub count: u64,
}

impl Baseline {
    /// `result`, which was read from `file`.
    pub fn of(file: String, result: &ResultFile) -> Self {
        let host = result.machine.host.clone();
        Self { file, name: result.name.clone(), host, started_at_unix_ns: result.started_at_unix_ns }
    }

    /// Whether `result` is the one.
    pub fn is(&self, result: &ResultFile) -> bool {
        self.started_at_unix_ns == result.started_at_unix_ns && self.host == result.machine.host
    }
}
