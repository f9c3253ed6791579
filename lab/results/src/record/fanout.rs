// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a fan-out leaves beside its series: each round and each receiver.

use serde::{Deserialize, Serialize};

use crate::machine::cpu_list::CpuList;

/// Each round and each receiver of a fan-out.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FanOut {
    /// The notifier's CPU, where it was pinned.
    pub notifier_cpu: Option<u32>,
    /// CPUs over which the receivers were pinned; none where the scheduler decided.
    pub receiver_cpus: Option<CpuList>,
    /// The recorded rounds, in order.
    pub rounds: Rounds,
    /// The receivers, by number; empty where they share one object.
    pub receivers: Receivers,
    /// Memory of all receivers while they waited for the first round.
    pub memory: Option<ReceiversMemory>,
}

/// One number of each kind for each round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rounds {
    /// From the first post to the first receiver awake, nanoseconds.
    pub first_ns: Vec<f64>,
    /// To the receiver in the middle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub median_ns: Vec<f64>,
    /// To the last.
    pub last_ns: Vec<f64>,
    /// From the first post until after the last.
    pub notify_ns: Vec<f64>,
    /// Wake-ups beyond a receiver's first, where all share one object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub duplicates: Vec<u64>,
    /// Receivers that did not wake, where all share one object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misses: Vec<u64>,
}

/// One number of each kind for each receiver.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Receivers {
    /// Median latency over the rounds, nanoseconds.
    pub p50_ns: Vec<f64>,
    /// Longest latency, nanoseconds.
    pub max_ns: Vec<f64>,
    /// Mean place in the order of waking, from 1.
    pub mean_place: Vec<f64>,
}

/// Memory of the receivers, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReceiversMemory {
    /// Their shares of all pages they have mapped (PSS): what would
    /// come free if all of them ended, kernel memory apart.
    pub pss_bytes: u64,
    /// Pages they have mapped, shared ones counted for each (RSS).
    pub rss_bytes: u64,
    /// By how much the kernel's stacks, page tables and unreclaimable slab grew from before the
    /// first to all of them, on the whole machine: what other programs did meanwhile is in it.
    pub kernel_bytes: u64,
    /// Processes that were looked at.
    pub processes: u64,
}
