// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel tells of a device on the PCI bus.

use super::root::Root;

/// At which NUMA node the device called `id` is (`0000:ca:00.0`, in letters of either size); none
/// where the kernel does not tell.
pub fn node(root: &Root, id: &str) -> Option<u32> {
    let is_id = id.chars().all(|letter| letter.is_ascii_hexdigit() || ":.".contains(letter));
    let file = format!("sys/bus/pci/devices/{}/numa_node", id.to_ascii_lowercase());
    // -1 where the firmware says nothing (Documentation/ABI/testing/sysfs-bus-pci).
    is_id.then(|| root.value(file)).flatten()
}
