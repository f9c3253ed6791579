// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded machines, for the tests of whatever asks about one.

#![expect(clippy::disallowed_methods, reason = "in a folder of its own, for tests")]

use std::fs;
use std::os::unix::fs::symlink;

use super::root::Root;

/// The files of one.
#[derive(Debug)]
pub struct Recorded(tempfile::TempDir);

const NVME: &str = "sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1";
pub(crate) const EMPTY: &str = "sys/devices/pci0000:00/0000:00:05.0/nvme/nvme1/nvme1n1";
const VIRTIO: &str = "sys/devices/platform/bus/10001000.virtio_mmio/virtio2/block/vda";

impl Recorded {
    /// One with these files.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let recorded = Self(tempfile::tempdir().unwrap());
        files.iter().for_each(|(path, text)| recorded.write(path, text));
        recorded
    }
    /// One with an NVMe device with partitions and one without, a virtual disk, a loop device and a
    /// volume over the empty NVMe device, as Linux 6.1 shows them.
    #[allow(clippy::new_without_default, reason = "it makes folders, and panics if it cannot")]
    pub fn new() -> Self {
        let recorded = Self::of(&[]);
        for (folder, number, poll) in [(NVME, "259:0", "1"), (EMPTY, "259:5", "0"), (VIRTIO, "254:0", "0")] {
            recorded.device(folder, number, poll);
        }
        recorded.device("sys/devices/virtual/block/loop0", "7:0", "0");
        recorded.device("sys/devices/virtual/block/nullb0", "251:0", "1");
        recorded.write("sys/devices/virtual/block/loop0/loop/backing_file", "/root/disk.img");
        recorded.write("sys/devices/virtual/block/loop0/loop/dio", "0");
        recorded.write(&format!("{NVME}/nvme0n1p1/partition"), "1");
        recorded.write(&format!("{NVME}/nvme0n1p1/dev"), "259:1");
        recorded.write(&format!("{NVME}/nvme0n1p1/size"), "2048");
        recorded.link("259:1", &format!("{NVME}/nvme0n1p1"));
        for line in ["31", "32", "33"] {
            recorded.write(&format!("sys/devices/pci0000:00/0000:00:04.0/msi_irqs/{line}"), "msix");
        }
        recorded.write(
            "proc/interrupts",
            "           CPU0       CPU1\n 12:          3          4  virtio-mmio  virtio2-req.0\n \
             31:          0         11  PCI-MSIX-0000:00:04.0   0-edge      nvme0q0\n \
             32:        500          0  PCI-MSIX-0000:00:04.0   1-edge      nvme0q1\n \
             40:          7          9  PCI-MSIX-0000:00:05.0   0-edge      nvme1q0\nRES: 1 2 x\n",
        );
        recorded.write("proc/self/mountinfo", "22 1 254:0 / / rw - ext4 /dev/vda rw\n");
        recorded.write("proc/swaps", "Filename Type Size Used Priority\n");
        recorded
    }
    pub fn root(&self) -> Root {
        Root::at(self.0.path())
    }
    pub fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fn link(&self, number: &str, folder: &str) {
        let links = self.0.path().join("sys/dev/block");
        fs::create_dir_all(&links).unwrap();
        symlink(self.0.path().join(folder), links.join(number)).unwrap();
    }
    pub(crate) fn device(&self, folder: &str, number: &str, poll: &str) {
        for (file, text) in [
            ("dev", number),
            ("size", "131072"),
            ("ro", "0"),
            ("queue/io_poll", poll),
            ("queue/io_poll_delay", "-1"),
            ("queue/logical_block_size", "512"),
            ("queue/iostats", "1"),
            ("stat", "100 0 800 9 20 0 160 3 0 5 12 4 0 0 0 6 1"),
        ] {
            self.write(&format!("{folder}/{file}"), text);
        }
        self.link(number, folder);
    }
}
