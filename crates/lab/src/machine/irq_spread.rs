// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where device interrupts have gone since boot, and where they may go.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cpu_list::CpuList;
use super::interrupts::Interrupts;
use super::root::Root;

/// Device interrupts of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IrqSpread {
    /// Device interrupts since boot on all CPUs; missing where `/proc/interrupts` is hidden.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub count: Option<u64>,
    /// CPUs that took at least one in a hundred of them.
    pub cpus: CpuList,
    /// CPUs to which at least one device's interrupts are directed now (`/proc/irq/*/effective_affinity_list`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub directed_to: Option<CpuList>,
}

impl IrqSpread {
    /// Reads it from a machine's files.
    pub fn read(root: &Root) -> Self {
        let by_cpu = Interrupts::read(root).map(|interrupts| interrupts.device_by_cpu());
        let count = by_cpu
            .as_ref()
            .map(|counts| counts.values().fold(0_u64, |sum, count| sum.saturating_add(*count)));
        let taker = |share: &u64| *share > 0 && share.saturating_mul(100) >= count.unwrap_or(0);
        let lists = root.numbered("proc/irq", "").into_iter().filter_map(|irq| {
            let file = |name: &str| root.value::<CpuList>(format!("proc/irq/{irq}/{name}"));
            // An interrupt nobody has asked for is directed to nobody.
            file("effective_affinity_list").filter(|list| !list.is_empty())
        });
        let directed: Vec<u32> = lists.flat_map(|list| list.iter().collect::<Vec<_>>()).collect();
        Self {
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
}
