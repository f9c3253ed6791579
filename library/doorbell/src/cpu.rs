// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processor that this thread runs on, as it is left for others to compare.

/// Its number, and one: 0 is left for "nobody said". It may be another's as soon as it is known.
pub(crate) fn cpu_mark() -> u32 {
    u32::try_from(rustix::thread::sched_getcpu()).unwrap_or(0).wrapping_add(1)
}
