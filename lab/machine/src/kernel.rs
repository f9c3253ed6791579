// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel: its version, its command line, its clock source, and the settings of it that
//! lengthen or shorten a wake-up.

use super::root::Root;
use doorbell_results::machine::cpu_list::CpuList;
use doorbell_results::machine::kernel::*;

pub fn read(root: &Root) -> Kernel {
    const CLOCK: &str = "sys/devices/system/clocksource/clocksource0";
    let switch = |path: &str| root.value::<i64>(path).map(|value| value != 0);
    let version = root.word("proc/sys/kernel/version");
    Kernel {
        system: None,
        stand_in: None,
        release: root.word("proc/sys/kernel/osrelease"),
        command_line: root.word("proc/cmdline"),
        preemption: preemption(root, version.as_deref()),
        clock_source: root.word(format!("{CLOCK}/current_clocksource")),
        clock_sources: root.word(format!("{CLOCK}/available_clocksource")),
        nohz_full: root.value("sys/devices/system/cpu/nohz_full").filter(|list: &CpuList| !list.is_empty()),
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
