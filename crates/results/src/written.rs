// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a time is written in few letters.

/// A nanosecond figure as people write it: `10us`, `1ms`, `0`.
pub fn short(ns: u64) -> String {
    let units = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1000, "us"),
    ];
    match units.into_iter().find(|(size, _)| ns >= *size && ns.is_multiple_of(*size)) {
        Some((size, unit)) => format!("{}{unit}", ns / size),
        None if ns == 0 => "0".to_owned(),
        None => format!("{ns}ns"),
    }
}
