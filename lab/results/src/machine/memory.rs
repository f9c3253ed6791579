// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory: how much, how much is free, whether it is swapped.

use serde::{Deserialize, Serialize};

/// Memory of the machine, bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
