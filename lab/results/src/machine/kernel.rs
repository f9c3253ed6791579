// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel: its version, its command line, its clock source, and the settings of it that
//! lengthen or shorten a wake-up.

use super::cpu_list::CpuList;
use serde::{Deserialize, Serialize};

/// The kernel as it describes itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Kernel {
    /// Whose it is, where it is not Linux: `Windows`, `macOS`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub system: Option<String>,
    /// What answers in that system's name without being it: `Wine
    /// 10.0`. No time is then that system's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stand_in: Option<String>,
    /// Release: `6.1.0-18-amd64`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub release: Option<String>,
    /// Build: number, configuration words such as `PREEMPT_DYNAMIC`, date.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
    /// Command line it was booted with.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub command_line: Option<String>,
    /// Preemption: `none`, `voluntary`, `full`, `lazy`, `rt`; where it can be changed while running
    /// and debugfs is hidden, `dynamic`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub preemption: Option<String>,
    /// The clock source in use.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clock_source: Option<String>,
    /// Clock sources it could use.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clock_sources: Option<String>,
    /// CPUs without a periodic tick while one task runs (`nohz_full=`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nohz_full: Option<CpuList>,
    /// CPUs that new device interrupts may go to by default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub default_irq_cpus: Option<CpuList>,
    /// Whether tasks are grouped by session for fairness (`sched_autogroup_enabled`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub autogroup: Option<bool>,
    /// Whether pages and tasks are moved between nodes automatically (`numa_balancing`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub numa_balancing: Option<bool>,
    /// Microseconds of each period that real-time tasks may run; -1 for all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rt_runtime_us: Option<i64>,
    /// The period, microseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rt_period_us: Option<i64>,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub transparent_huge_pages: Option<String>,
    /// What users without privilege may count and trace: from -1, everything, to 2, their own code
    /// in user mode, and 3 or more, nothing (Debian).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub perf_event_paranoid: Option<i64>,
}

impl Kernel {
    /// The system and its release: `Linux 6.1.0-18-amd64`.
    pub fn title(&self) -> Option<String> {
        let system = self.system.as_deref().unwrap_or("Linux");
        let stand_in = self.stand_in.as_ref().map_or_else(String::new, |name| format!(" as {name} has it"));
        Some(format!("{system} {}{stand_in}", self.release.as_deref()?))
    }

    /// The value of a parameter on the command line: that of the last
    /// `name=value`, as the kernel takes it.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.command_line
            .as_deref()?
            .split_ascii_whitespace()
            // What follows is for the first process, not for the kernel.
            .take_while(|word| *word != "--")
            .filter_map(|word| word.strip_prefix(name)?.strip_prefix('='))
            .last()
    }
}
