// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where device interrupts have gone since boot, and where they may go.

use super::cpu_list::CpuList;
use serde::{Deserialize, Serialize};

/// Device interrupts of the machine.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IrqSpread {
    /// Device interrupts since boot on all CPUs; missing where `/proc/interrupts` is hidden.
    pub count: Option<u64>,
    /// CPUs that took at least one in a hundred of them.
    pub cpus: CpuList,
    /// CPUs to which at least one device's interrupts are directed now
    /// (`/proc/irq/*/effective_affinity_list`).
    pub directed_to: Option<CpuList>,
}
