// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory: how much, how much is free, whether it is swapped.

use super::root::{Root, field};
use doorbell_results::machine::memory::*;

pub fn read(root: &Root) -> Memory {
    let text = root.text("proc/meminfo").unwrap_or_default();
    let bytes = |key: &str| {
        let kib: u64 = field(&text, key)?.strip_suffix("kB")?.trim_end().parse().ok()?;
        Some(kib.saturating_mul(1024))
    };
    Memory {
        total_bytes: bytes("MemTotal"),
        available_bytes: bytes("MemAvailable"),
        swap_used_bytes: bytes("SwapTotal")
            .zip(bytes("SwapFree"))
            .map(|(all, free)| all.saturating_sub(free)),
    }
}
