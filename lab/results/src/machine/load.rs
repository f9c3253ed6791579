// SPDX-License-Identifier: MIT OR Apache-2.0
//! What else uses the CPUs: the share of them that went to anything
//! but this command and its children.

use super::cpu_list::CpuList;
use serde::{Deserialize, Serialize};

/// Load over a stretch of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Load {
    /// Length of the stretch, nanoseconds.
    pub window_ns: u64,
    /// The CPUs looked at.
    pub cpus: CpuList,
    /// CPU time used on them by anything else, as a share of one CPU.
    pub foreign_share: Option<f64>,
    /// How far it may be off: a percent of a short trial where the scheduler's own clock told it
    /// and no tick fell into an interrupt or into steal time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_resolution: Option<f64>,
    /// The task that used most of it, where the kernel tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest: Option<String>,
    /// Time the hypervisor took from them, as a share of one CPU.
    pub steal_share: Option<f64>,
    /// How far shares that the kernel counts in ticks of 10 ms may be off.
    pub share_resolution: Option<f64>,
    /// Time in which some runnable task of the machine waited for a CPU, as a share of the stretch.
    pub pressure_share: Option<f64>,
    /// Tasks of the machine that ran or wanted to, averaged over the last minute.
    pub load_average: Option<f64>,
}
