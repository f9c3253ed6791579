// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of the receivers, as the kernel counts it.

use std::collections::BTreeSet;

use doorbell_machine::root::{Root, field};
use doorbell_results::record::fanout::ReceiversMemory;

/// Memory that the kernel holds for its tasks, bytes: stacks, page tables, and slab that cannot be
/// reclaimed (proc_meminfo(5)).
pub fn of_kernel(root: &Root) -> u64 {
    let text = root.text("proc/meminfo").unwrap_or_default();
    let kib = |key| kib(&text, key);
    ["KernelStack", "PageTables", "SUnreclaim"].into_iter().filter_map(kib).sum::<u64>() * 1024
}

fn kib(text: &str, key: &str) -> Option<u64> {
    field(text, key)?.strip_suffix("kB")?.trim_end().parse().ok()
}

/// The memory of the processes `pids`, given what the kernel held `before` the first of them.
pub fn of(root: &Root, pids: &BTreeSet<i32>, before: u64) -> ReceiversMemory {
    let kernel_bytes = of_kernel(root).saturating_sub(before);
    let mut memory = ReceiversMemory { kernel_bytes, ..ReceiversMemory::default() };
    for pid in pids {
        let Some(rollup) = root.text(format!("proc/{pid}/smaps_rollup")) else { continue };
        if let (Some(pss), Some(rss)) = (kib(&rollup, "Pss"), kib(&rollup, "Rss")) {
            memory.pss_bytes += pss * 1024;
            memory.rss_bytes += rss * 1024;
            memory.processes += 1;
        }
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_machine::recorded::Recorded;

    #[test]
    fn shares_are_added_up_and_who_has_gone_is_not_counted() {
        let meminfo = "MemTotal: 9 kB\nKernelStack: 400 kB\nPageTables: 200 kB\nSUnreclaim: 100 kB\n";
        let machine = Recorded::of(&[("proc/meminfo", meminfo)]);
        for (pid, pss) in [(10, 100), (11, 50)] {
            let text =
                format!("7f00-7f10 ---p 0 00:00 0 [rollup]\nRss:  400 kB\nPss:  {pss} kB\nPss_Dirty: 9 kB\n");
            machine.write(&format!("proc/{pid}/smaps_rollup"), &text);
        }
        let memory = of(&machine.root(), &BTreeSet::from([10, 11, 12]), 300 * 1024);
        let expected = ReceiversMemory {
            pss_bytes: 150 * 1024,
            rss_bytes: 800 * 1024,
            kernel_bytes: 400 * 1024,
            processes: 2,
        };
        assert_eq!(memory, expected);
    }
}
