// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this process may do that measuring profits from.

use serde::{Deserialize, Serialize};

/// Permissions of this process.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Permissions {
    /// Whether it may take real-time priority whatever the limit says (CAP_SYS_NICE).
    pub nice: Option<bool>,
    /// Whether it may have more tasks than the limit says
    /// (CAP_SYS_RESOURCE or CAP_SYS_ADMIN; setrlimit(2)).
    pub tasks: Option<bool>,
    /// Whether it may count and trace whatever `perf_event_paranoid`
    /// says (CAP_PERFMON or CAP_SYS_ADMIN).
    pub perfmon: Option<bool>,
    /// Whether it can read the kernel's trace events.
    pub tracefs: bool,
    /// Whether the kernel has hardware performance counters of this CPU
    /// (`/sys/bus/event_source/devices/cpu*`).
    pub hardware_counters: bool,
    /// Whether it can hold idle states off by `/dev/cpu_dma_latency`;
    /// missing where there is no such file.
    pub dma_latency: Option<bool>,
    /// Whether this program can be started again by `/proc/self/exe`, as every trial starts it;
    /// missing where nobody asked.
    pub own_program: Option<bool>,
}
