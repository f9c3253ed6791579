// SPDX-License-Identifier: MIT OR Apache-2.0
//! A block device as the kernel shows it in sysfs: what it is, who uses it, whether it can be
//! polled, and which interrupts are its own.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A device, or a part of one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BlockDevice {
    /// Its name: `nvme0n1`, `vda2`.
    pub name: String,
    /// The whole device that it is a part of, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// What it calls itself, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its NUMA node, where the kernel tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// Whether the kernel would poll a queue of it (`queue/io_poll`);
    /// missing where it does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polls: Option<bool>,
    /// `queue/io_poll_delay`: -1 polls at once, 0 sleeps half the
    /// usual time first, more sleeps so many microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_delay: Option<i64>,
    /// Smallest block, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
    /// Size, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Whether it counts what it does (`queue/iostats`); missing where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<bool>,
    /// Numbers of its interrupts; none where the kernel does not say which are its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<BTreeSet<u32>>,
    /// Why nobody can tell which interrupts are its own, where nobody can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts_hidden: Option<String>,
    /// What makes reads of it other than reads of a medium: a guest's
    /// virtual disk, a file behind a loop device, memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<String>,
}
