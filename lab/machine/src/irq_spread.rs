// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where device interrupts have gone since boot, and where they may go.

use super::interrupts::Interrupts;
use super::root::Root;
use doorbell_results::machine::cpu_list::CpuList;
use doorbell_results::machine::irq_spread::*;

pub fn read(root: &Root) -> IrqSpread {
    let by_cpu = Interrupts::read(root).map(|interrupts| interrupts.device_by_cpu());
    let count =
        by_cpu.as_ref().map(|counts| counts.values().fold(0_u64, |sum, count| sum.saturating_add(*count)));
    let taker = |share: &u64| *share > 0 && share.saturating_mul(100) >= count.unwrap_or(0);
    let lists = root.numbered("proc/irq", "").into_iter().filter_map(|irq| {
        let file = |name: &str| root.value::<CpuList>(format!("proc/irq/{irq}/{name}"));
        // An interrupt nobody has asked for is directed to nobody.
        file("effective_affinity_list").filter(|list| !list.is_empty())
    });
    let directed: Vec<u32> = lists.flat_map(|list| list.iter().collect::<Vec<_>>()).collect();
    IrqSpread {
        count,
        cpus: by_cpu
            .unwrap_or_default()
            .into_iter()
            .filter(|(_, count)| taker(count))
            .map(|(cpu, _)| cpu)
            .collect(),
        directed_to: (!directed.is_empty()).then(|| directed.into_iter().collect()),
    }
}
