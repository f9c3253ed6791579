// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory: how much, how much is free, whether it is swapped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::root::{Root, field};

/// Memory of the machine, bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// All of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub total_bytes: Option<u64>,
    /// What programs could still take without swapping.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub available_bytes: Option<u64>,
    /// Swap in use.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub swap_used_bytes: Option<u64>,
}

impl Memory {
    /// Reads it from a machine's files.
    pub fn read(root: &Root) -> Self {
        let text = root.text("proc/meminfo").unwrap_or_default();
        let bytes = |key: &str| {
            let kib: u64 = field(&text, key)?.strip_suffix("kB")?.trim_end().parse().ok()?;
            Some(kib.saturating_mul(1024))
        };
        Self {
            total_bytes: bytes("MemTotal"),
            available_bytes: bytes("MemAvailable"),
            swap_used_bytes: bytes("SwapTotal")
                .zip(bytes("SwapFree"))
                .map(|(all, free)| all.saturating_sub(free)),
        }
    }
}
