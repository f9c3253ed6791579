// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel: its version, its command line, its clock source, and the settings of it that lengthen or shorten a wake-up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cpu_list::CpuList;
use super::root::Root;

/// The kernel as it describes itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kernel {
    /// Release: `6.1.0-18-amd64`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub release: Option<String>,
    /// Build: number, configuration words such as `PREEMPT_DYNAMIC`, date.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
    /// Command line it was booted with.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub command_line: Option<String>,
    /// Preemption: `none`, `voluntary`, `full`, `lazy`, `rt`; where it can be changed while running and debugfs is
    /// hidden, `dynamic`.
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
    /// What users without privilege may count and trace: from -1, everything, to 2, their own code in user mode, and 3 or
    /// more, nothing (Debian).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub perf_event_paranoid: Option<i64>,
}

impl Kernel {
    /// Reads it from a machine's files.
    pub fn read(root: &Root) -> Self {
        const CLOCK: &str = "sys/devices/system/clocksource/clocksource0";
        let switch = |path: &str| root.value::<i64>(path).map(|value| value != 0);
        let version = root.word("proc/sys/kernel/version");
        Self {
            release: root.word("proc/sys/kernel/osrelease"),
            command_line: root.word("proc/cmdline"),
            preemption: preemption(root, version.as_deref()),
            clock_source: root.word(format!("{CLOCK}/current_clocksource")),
            clock_sources: root.word(format!("{CLOCK}/available_clocksource")),
            nohz_full: root
                .value("sys/devices/system/cpu/nohz_full")
                .filter(|list: &CpuList| !list.is_empty()),
            default_irq_cpus: root.text("proc/irq/default_smp_affinity").as_deref().and_then(mask),
            autogroup: switch("proc/sys/kernel/sched_autogroup_enabled"),
            numa_balancing: switch("proc/sys/kernel/numa_balancing"),
            rt_runtime_us: root.value("proc/sys/kernel/sched_rt_runtime_us"),
            rt_period_us: root.value("proc/sys/kernel/sched_rt_period_us"),
            transparent_huge_pages: root
                .text("sys/kernel/mm/transparent_hugepage/enabled")
                .as_deref()
                .and_then(|text| chosen(text, '[', ']')),
            perf_event_paranoid: root.value("proc/sys/kernel/perf_event_paranoid"),
            version,
        }
    }

    /// The value of a parameter on the command line: that of the last `name=value`, as the kernel takes it.
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

fn preemption(root: &Root, version: Option<&str>) -> Option<String> {
    if root.value::<u32>("sys/kernel/realtime") == Some(1) {
        return Some("rt".to_owned());
    }
    if let Some(model) = root.text("sys/kernel/debug/sched/preempt").and_then(|text| chosen(&text, '(', ')'))
    {
        return Some(model);
    }
    let words: Vec<&str> = version?.split_ascii_whitespace().collect();
    let model = |(word, model): &(&str, &str)| words.contains(word).then(|| (*model).to_owned());
    [("PREEMPT_RT", "rt"), ("PREEMPT_DYNAMIC", "dynamic"), ("PREEMPT_LAZY", "lazy"), ("PREEMPT", "full")]
        .iter()
        .find_map(model)
        // Builds for servers print no word, whether they preempt voluntarily or not at all.
        .or_else(|| Some("none or voluntary".to_owned()))
}

/// The bracketed word of a list such as `always [madvise] never`.
fn chosen(text: &str, open: char, close: char) -> Option<String> {
    let (_, rest) = text.split_once(open)?;
    Some(rest.split_once(close)?.0.to_owned())
}

/// A mask of CPUs as 32-bit groups in hexadecimal, the highest first: `3`, `ff,00000000`.
fn mask(text: &str) -> Option<CpuList> {
    let mut cpus = Vec::new();
    // 256 groups are the 8192 CPUs Linux can have.
    for (group, digits) in text.rsplit(',').enumerate().take(256) {
        let bits = u32::from_str_radix(digits.trim(), 16).ok()?;
        cpus.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| group as u32 * 32 + bit));
    }
    Some(cpus.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_of_repeated_parameters_counts_and_those_of_the_first_process_do_not() {
        let command_line = Some("quiet isolcpus=2 x=1 isolcpus=3-5 -- isolcpus=9".to_owned());
        let kernel = Kernel { command_line, ..Kernel::default() };
        assert_eq!(kernel.parameter("isolcpus"), Some("3-5"));
        assert_eq!(kernel.parameter("cpus"), None);
    }

    #[test]
    fn a_mask_is_read_from_its_last_group() {
        assert_eq!(mask("3").unwrap().to_string(), "0,1");
        assert_eq!(mask("1,80000000").unwrap().to_string(), "31,32");
        assert_eq!(mask("g"), None);
    }

    proptest! {
        #[test]
        fn no_mask_and_no_choice_panics(text in "[\\PC,\\[\\]()]{0,40}") {
            let _ = (mask(&text), chosen(&text, '[', ']'), chosen(&text, '(', ')'));
        }
    }
}
