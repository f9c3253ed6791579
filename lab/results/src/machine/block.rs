// SPDX-License-Identifier: MIT OR Apache-2.0
//! A block device as the kernel shows it in sysfs: what it is, who uses it, whether it can be
//! polled, and which interrupts are its own.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A device, or a part of one.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BlockDevice {
    /// Its name: `nvme0n1`, `vda2`.
    pub name: String,
    /// The whole device that it is a part of, where it is one.
    pub part_of: Option<String>,
    /// What it calls itself, where it does.
    pub model: Option<String>,
    /// Its NUMA node, where the kernel tells.
    pub node: Option<u32>,
    /// Whether the kernel would poll a queue of it (`queue/io_poll`);
    /// missing where it does not tell.
    pub polls: Option<bool>,
    /// `queue/io_poll_delay`: -1 polls at once, 0 sleeps half the
    /// usual time first, more sleeps so many microseconds.
    pub poll_delay: Option<i64>,
    /// Smallest block, bytes.
    pub block_bytes: Option<u64>,
    /// Size, bytes.
    pub bytes: Option<u64>,
    /// Whether it counts what it does (`queue/iostats`); missing where the kernel does not tell.
    pub counts: Option<bool>,
    /// Numbers of its interrupts; none where the kernel does not say which are its own.
    pub interrupts: Option<BTreeSet<u32>>,
    /// Why nobody can tell which interrupts are its own, where nobody can.
    pub interrupts_hidden: Option<String>,
    /// What makes reads of it other than reads of a medium: a guest's
    /// virtual disk, a file behind a loop device, memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<String>,
}
