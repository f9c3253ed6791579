// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this process may do that measuring profits from.

use super::root::{Root, field};
use doorbell_results::machine::permissions::*;

/// Capability numbers (include/uapi/linux/capability.h).
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_NICE: u32 = 23;
const CAP_SYS_RESOURCE: u32 = 24;
const CAP_PERFMON: u32 = 38;

/// Reads them from a machine's files; `dma_latency` and `own_program`
/// are what the kernel says when asked.
pub fn read(root: &Root, dma_latency: Option<bool>, own_program: Option<bool>) -> Permissions {
    let status = root.text("proc/self/status").unwrap_or_default();
    let effective = field(&status, "CapEff").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    let has = |capability: u32| effective.map(|mask| mask >> capability & 1 == 1);
    let events = ["sys/kernel/tracing/events/sched", "sys/kernel/debug/tracing/events/sched"];
    const PMUS: &str = "sys/bus/event_source/devices";
    Permissions {
        nice: has(CAP_SYS_NICE),
        tasks: has(CAP_SYS_RESOURCE).zip(has(CAP_SYS_ADMIN)).map(|(resource, admin)| resource || admin),
        perfmon: has(CAP_PERFMON).zip(has(CAP_SYS_ADMIN)).map(|(perfmon, admin)| perfmon || admin),
        tracefs: events.iter().any(|folder| !root.names(folder).is_empty()),
        hardware_counters: root
            .names(PMUS)
            .iter()
            .any(|name| name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv")),
        dma_latency,
        own_program,
    }
}

/// Whether this program can be executed by its name in `/proc`, as every trial's host is.
pub fn own_program() -> bool {
    rustix::fs::access("/proc/self/exe", rustix::fs::Access::EXEC_OK).is_ok()
}

/// Whether `/dev/cpu_dma_latency` may be written; asking changes nothing.
pub fn dma_latency() -> Option<bool> {
    const PATH: &str = "/dev/cpu_dma_latency";
    std::path::Path::new(PATH)
        .exists()
        .then(|| rustix::fs::access(PATH, rustix::fs::Access::WRITE_OK).is_ok())
}
