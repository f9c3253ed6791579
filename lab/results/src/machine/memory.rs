// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory: how much, how much is free, whether it is swapped.

use serde::{Deserialize, Serialize};

/// Memory of the machine, bytes.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Memory {
    /// All of it.
    pub total_bytes: Option<u64>,
    /// What programs could still take without swapping.
    pub available_bytes: Option<u64>,
    /// Swap in use.
    pub swap_used_bytes: Option<u64>,
}
