// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trial of transfers leaves beside its times: what the device and the kernel counted.

use serde::{Deserialize, Serialize};

use crate::machine::block::BlockDevice;

/// What was counted while blocks were transferred.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Io {
    /// The device; none where the file system has none.
    pub device: Option<BlockDevice>,
    /// How the target was prepared, if it was.
    pub prepared: Option<Prepared>,
    /// Interrupts of the device on all CPUs in the window, whoever they were for; none where it has
    /// none or the kernel does not say which are its own.
    pub interrupts: Option<u64>,
    /// Operations of the trial's direction that the device completed
    /// in the window, whoever asked for them.
    pub device_operations: Option<u64>,
    /// Operations of the other direction, flushes and discards among them.
    pub other_operations: Option<u64>,
    /// CPU time in the window of threads that the kernel made for the
    /// trial, nanoseconds; theirs alone.
    pub kernel_thread_ns: u64,
}

impl Io {
    /// Interrupts of the device that nothing but `transfers` of the
    /// trial explains; none where they are not known.
    ///
    /// Each operation of somebody else may have been one interrupt, so this is the least that were
    /// the trial's own. Where the device did twice as many or more, the kernel cut large blocks
    /// into several operations: then they are all taken as own.
    pub fn own_interrupts(&self, transfers: u64) -> Option<u64> {
        let beyond = self.device_operations.unwrap_or(0).saturating_sub(transfers);
        let foreign = if beyond >= transfers { 0 } else { beyond };
        let foreign = foreign.saturating_add(self.other_operations.unwrap_or(0));
        Some(self.interrupts?.saturating_sub(foreign))
    }
}

/// How a target was prepared, and what a look at it afterwards found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Prepared {
    /// Bytes of it.
    pub bytes: u64,
    /// Each pass in order: the first from front to end in blocks of 1 MiB, later ones over every
    /// block of 4 KiB in random order.
    pub passes: Vec<Pass>,
    /// Sectors of 512 bytes that were read back from the device and held what had been written; all
    /// of them, or the run ends.
    pub checked_sectors: u64,
}

/// One pass over a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pass {
    /// `sequential` or `random`.
    pub order: String,
    /// How long it took, fsync included, nanoseconds.
    pub took_ns: u64,
    /// Bytes a second.
    pub rate: f64,
}

/// What is said where polling cannot be: the cure by driver.
pub const CURE: &str = "Queues to poll are asked for when a driver is loaded: nvme.poll_queues=N, \
    virtio_blk.poll_queues=N or null_blk.poll_queues=N on the kernel's command line; without \
    hardware: doorbell vm run --nvme poll -- io --device /dev/nvme0n1";
