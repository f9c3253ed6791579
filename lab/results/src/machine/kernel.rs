// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel: its version, its command line, its clock source, and the settings of it that
//! lengthen or shorten a wake-up.

use super::cpu_list::CpuList;
use serde::{Deserialize, Serialize};

/// The kernel as it describes itself.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Kernel {
    /// Whose it is, where it is not Linux: `Windows`, `macOS`.
    pub system: Option<String>,
    /// What answers in that system's name without being it: `Wine
    /// 10.0`. No time is then that system's.
    pub stand_in: Option<String>,
    /// Release: `6.1.0-18-amd64`.
    pub release: Option<String>,
    /// Build: number, configuration words such as `PREEMPT_DYNAMIC`, date.
    pub version: Option<String>,
    /// Command line it was booted with.
    pub command_line: Option<String>,
    /// Preemption: `none`, `voluntary`, `full`, `lazy`, `rt`; where it can be changed while running
    /// and debugfs is hidden, `dynamic`.
    pub preemption: Option<String>,
    /// The clock source in use.
    pub clock_source: Option<String>,
    /// Clock sources it could use.
    pub clock_sources: Option<String>,
    /// CPUs without a periodic tick while one task runs (`nohz_full=`).
    pub nohz_full: Option<CpuList>,
    /// CPUs that new device interrupts may go to by default.
    pub default_irq_cpus: Option<CpuList>,
    /// Whether tasks are grouped by session for fairness (`sched_autogroup_enabled`).
    pub autogroup: Option<bool>,
    /// Whether pages and tasks are moved between nodes automatically (`numa_balancing`).
    pub numa_balancing: Option<bool>,
    /// Microseconds of each period that real-time tasks may run; -1 for all.
    pub rt_runtime_us: Option<i64>,
    /// The period, microseconds.
    pub rt_period_us: Option<i64>,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub transparent_huge_pages: Option<String>,
    /// What users without privilege may count and trace: from -1, everything, to 2, their own code
    /// in user mode, and 3 or more, nothing (Debian).
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
