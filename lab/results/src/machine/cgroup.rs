// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the control group of this process allows it, in either version of the interface.

use serde::{Deserialize, Serialize};

/// Limits of the process's control group. Of each, the tightest on
/// the way from the group to the top.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cgroup {
    /// The version whose CPU controller is in use, 1 or 2.
    pub version: Option<u32>,
    /// Its path in the hierarchy of that version.
    pub path: Option<String>,
    /// Its weight among the groups beside it when CPUs are short (cpu.weight; cpu.shares in version
    /// 1).
    pub cpu_weight: Option<u64>,
    /// CPU time allowed, in CPUs; missing where there is no limit.
    pub cpu_quota: Option<f64>,
    /// Memory allowed, bytes; missing where there is no limit.
    pub memory_bytes: Option<u64>,
    /// Tasks allowed; missing where there is no limit.
    pub pids: Option<u64>,
    /// Tasks there are.
    pub pids_current: Option<u64>,
    /// Periods in which the group, or one above it, had used up its quota and was stopped, since it
    /// was made.
    pub throttled_periods: Option<u64>,
    /// Time for which they were stopped, nanoseconds, since they were made: of each, of all CPUs
    /// together.
    pub throttled_ns: Option<u64>,
}
