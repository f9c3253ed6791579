// SPDX-License-Identifier: MIT OR Apache-2.0
//! The proof that a load was there for the whole of a trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What was seen of the load.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoadProof {
    /// How long the last worker to start had been at work when the trial began, nanoseconds.
    pub started_before_ns: u64,
    /// How long after the trial's end the last look found every worker still at work, nanoseconds.
    pub outlasted_ns: u64,
    /// Slices of work done while the trial ran, by the worker that did fewest.
    pub fewest_slices: u64,
    /// CPU time of all workers while the trial ran, nanoseconds.
    pub cpu_ns: u64,
    /// Share of the trial's time for which each CPU was busy, by its number. What a hypervisor took
    /// from it counts: it was wanted.
    pub busy: BTreeMap<u32, f64>,
    /// How far those shares may be off, because the kernel counts in ticks of 10 ms.
    pub busy_resolution: f64,
    /// Tasks that ran or wanted to, at each look: before, each second, after.
    pub run_queue: Vec<u64>,
    /// The same averaged over the last minute, at the end.
    pub load_average: Option<f64>,
    /// Time in which some runnable task waited for a CPU, as a share of the trial's (PSI).
    pub pressure_share: Option<f64>,
}

impl LoadProof {
    /// The share of the least busy CPU.
    pub fn least_busy(&self) -> Option<(u32, f64)> {
        self.busy.iter().map(|(cpu, share)| (*cpu, *share)).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The mean of the looks at the run queue.
    pub fn mean_run_queue(&self) -> Option<f64> {
        let sum = self.run_queue.iter().fold(0_u64, |sum, length| sum.saturating_add(*length));
        (!self.run_queue.is_empty()).then(|| sum as f64 / self.run_queue.len() as f64)
    }
}
