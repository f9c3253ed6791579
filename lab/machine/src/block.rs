// SPDX-License-Identifier: MIT OR Apache-2.0
//! A block device as the kernel shows it in sysfs: what it is, who uses it, whether it can be
//! polled, and which interrupts are its own.

use doorbell_results::machine::block::*;
use std::collections::BTreeSet;

use std::path::{Path, PathBuf};

use super::root::Root;

/// Operations that a device has completed since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Completed {
    pub reads: u64,
    /// Writes, discards and flushes.
    pub others: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InUse {
    #[error("{name} is a part of {of}: what its neighbours need lies beside it; name a whole device")]
    Part { name: String, of: String },
    #[error("{name} has partitions ({parts}): something was put there")]
    Partitioned { name: String, parts: String },
    #[error("{name} is mounted on {on}")]
    Mounted { name: String, on: String },
    #[error("{name} is swapped to")]
    Swapped { name: String },
    #[error("{name} is held by {by} (a volume, an array, a cache or encryption is made of it)")]
    Held { name: String, by: String },
    #[error("{name} is read-only")]
    ReadOnly { name: String },
    #[error("nobody can tell whether {name} is in use: {file} cannot be read")]
    Unknown { name: String, file: String },
}

/// The device with the number `major:minor`; none where sysfs shows
/// none, as for tmpfs and other systems of no device.
pub fn read(root: &Root, major: u32, minor: u32) -> Option<BlockDevice> {
    let folder = std::fs::canonicalize(root.path(format!("sys/dev/block/{major}:{minor}"))).ok()?;
    at(root, &folder)
}

fn at(root: &Root, folder: &Path) -> Option<BlockDevice> {
    let name = last(folder)?;
    let part = folder.join("partition").exists();
    let whole = if part { folder.parent()? } else { folder };
    // Absolute paths are themselves below a root.
    let word = |folder: &Path, file: &str| root.word(folder.join(file));
    let number = |file: &str| word(whole, file).and_then(|text| text.parse::<u64>().ok());
    let interrupts = interrupts(root, whole);
    let sectors = word(folder, "size").and_then(|text| text.parse::<u64>().ok());
    Some(BlockDevice {
        part_of: if part { last(whole) } else { None },
        model: word(whole, "device/model"),
        node: word(whole, "device/numa_node").and_then(|text| text.parse().ok()),
        polls: number("queue/io_poll").map(|value| value != 0),
        poll_delay: word(whole, "queue/io_poll_delay").and_then(|text| text.parse().ok()),
        block_bytes: number("queue/logical_block_size"),
        // The kernel counts in sectors of 512 bytes whatever the device's own are.
        bytes: sectors.map(|sectors| sectors * 512),
        counts: number("queue/iostats").map(|value| value != 0),
        interrupts_hidden: interrupts.as_ref().err().cloned(),
        interrupts: interrupts.ok(),
        behind: behind(root, whole),
        name,
    })
}

/// What it has completed since boot (`stat`).
pub fn completed(root: &Root, major: u32, minor: u32) -> Option<Completed> {
    let text = root.text(format!("sys/dev/block/{major}:{minor}/stat"))?;
    let fields: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    // Documentation/block/stat.rst: reads 0, writes 4, discards 11, flushes 15.
    let at = |index: usize| fields.get(index).copied().unwrap_or(0);
    (fields.len() >= 11).then(|| Completed { reads: at(0), others: at(4) + at(11) + at(15) })
}

/// The first reason for which it must not be written.
pub fn in_use(root: &Root, major: u32, minor: u32) -> Option<InUse> {
    let link = format!("sys/dev/block/{major}:{minor}");
    let Ok(folder) = std::fs::canonicalize(root.path(&link)) else {
        return Some(InUse::Unknown { name: format!("{major}:{minor}"), file: format!("/{link}") });
    };
    let name = last(&folder).unwrap_or_default();
    if folder.join("partition").exists() {
        let of = folder.parent().and_then(last).unwrap_or_default();
        return Some(InUse::Part { name, of });
    }
    let unknown = |file: &str| InUse::Unknown { name: name.clone(), file: format!("/{file}") };
    let Some(mountinfo) = root.text("proc/self/mountinfo") else {
        return Some(unknown("proc/self/mountinfo"));
    };
    // A kernel that does not swap has no such file.
    let swaps = root.text("proc/swaps").unwrap_or_default();
    let parts: Vec<PathBuf> = parts(&folder);
    for part in std::iter::once(&folder).chain(&parts) {
        let name = last(part).unwrap_or_default();
        let Some(number) = root.word(part.join("dev")) else { return Some(unknown("sys/.../dev")) };
        // By its source alone btrfs tells which it is.
        let is_it = |own: &str, source: &str| own == number || source.strip_prefix("/dev/") == Some(&name);
        if let Some((_, on, _)) = mounts(&mountinfo).find(|(own, _, source)| is_it(own, source)) {
            return Some(InUse::Mounted { name, on: on.to_owned() });
        }
        let file = |line: &str| line.split_whitespace().next().map(str::to_owned);
        if swaps.lines().filter_map(file).any(|path| path.strip_prefix("/dev/") == Some(&name)) {
            return Some(InUse::Swapped { name });
        }
        let holders = root.names(part.join("holders"));
        if !holders.is_empty() {
            return Some(InUse::Held { name, by: holders.join(", ") });
        }
    }
    if !parts.is_empty() {
        let parts = parts.iter().filter_map(|part| last(part)).collect::<Vec<_>>().join(", ");
        return Some(InUse::Partitioned { name, parts });
    }
    match root.word(folder.join("ro")).as_deref() {
        Some("0") => None,
        Some(_) => Some(InUse::ReadOnly { name }),
        None => Some(unknown("sys/.../ro")),
    }
}

fn last(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

/// The folders of a device's parts.
fn parts(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut parts: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.join("partition").exists()).collect();
    parts.sort();
    parts
}

/// The lines of a `/proc/self/mountinfo` (proc_pid_mountinfo(5)): of each file system its number,
/// where it is mounted, and its source, the second word after the lone hyphen.
fn mounts(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    text.lines().filter_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let mut front = front.split(' ').skip(2);
        Some((front.next()?, front.nth(1)?, back.split(' ').nth(1)?))
    })
}

/// The device that the file system with this number, which no device has, is mounted from.
pub fn source_of_mount(root: &Root, major: u32, minor: u32) -> Option<PathBuf> {
    let (text, number) = (root.text("proc/self/mountinfo")?, format!("{major}:{minor}"));
    let mut sources = mounts(&text).filter(|(own, _, source)| *own == number && source.starts_with("/dev/"));
    sources.next().map(|(_, _, source)| PathBuf::from(source))
}

/// The numbers of the interrupts of a device: those of the PCI function above it, of the devices it
/// is made of, or what the driver's name says in `/proc/interrupts`; else why they cannot be told.
fn interrupts(root: &Root, whole: &Path) -> Result<BTreeSet<u32>, String> {
    let slaves = root.names(whole.join("slaves"));
    if !slaves.is_empty() {
        let of = |name: &String| {
            let slave = std::fs::canonicalize(whole.join("slaves").join(name));
            interrupts(root, &slave.map_err(|error| format!("{name}, which it is made of: {error}"))?)
        };
        let all: Vec<BTreeSet<u32>> = slaves.iter().map(of).collect::<Result<_, _>>()?;
        return Ok(all.into_iter().flatten().collect());
    }
    // Its number is the subsystem's, and no controller's (kernel drivers/nvme/host/multipath.c).
    let is_subsystem = |folder: &&Path| last(folder).is_some_and(|name| name.starts_with("nvme-subsys"));
    if let Some(subsystem) = whole.ancestors().find(is_subsystem) {
        return of_subsystem(root, subsystem);
    }
    let names: Vec<String> = whole.ancestors().filter_map(last).collect();
    // The nearest function alone: above it are bridges, whose interrupts are those of the bus.
    let function = whole.ancestors().find(|above| last(above).is_some_and(|name| is_pci_function(&name)));
    let own = function.map(|function| root.names(function.join("msi_irqs"))).unwrap_or_default();
    if !own.is_empty() {
        return Ok(own.iter().filter_map(|number| number.parse().ok()).collect());
    }
    let prefix = names.iter().find_map(|name| {
        // The controller's number: that in the name of a namespace may be its subsystem's.
        let nvme = number_of(name, "nvme").map(|own| format!("nvme{own}q"));
        nvme.or_else(|| Some(format!("virtio{}-", number_of(name, "virtio")?)))
    });
    let Some(prefix) = prefix else {
        // What has no bus above it has no interrupts either.
        let none = names.iter().any(|name| name == "virtual").then(BTreeSet::new);
        return none.ok_or_else(|| "nothing says how its driver calls them".to_owned());
    };
    let lines = root.text("proc/interrupts").ok_or("/proc/interrupts cannot be read")?;
    let own: BTreeSet<u32> = lines
        .lines()
        .filter(|line| line.split_whitespace().last().is_some_and(|action| action.starts_with(&prefix)))
        .filter_map(|line| line.split(':').next()?.trim().parse().ok())
        .collect();
    if own.is_empty() {
        Err(format!("/proc/interrupts has none that is called {prefix}..."))
    } else {
        Ok(own)
    }
}

/// The interrupts of an NVMe subsystem with one controller, to which its folder
/// has a link (`nvme_init_subsystem` in kernel drivers/nvme/host/core.c). A
/// drive that could have several is a subsystem with one too.
fn of_subsystem(root: &Root, subsystem: &Path) -> Result<BTreeSet<u32>, String> {
    let is_controller = |name: &String| number_of(name, "nvme").is_some();
    let controllers: Vec<String> = root.names(subsystem).into_iter().filter(is_controller).collect();
    match &controllers[..] {
        [] => {
            Err("it stands for the paths of an NVMe subsystem, and no controller of that is told".to_owned())
        }
        [one] => {
            let controller = std::fs::canonicalize(subsystem.join(one));
            interrupts(root, &controller.map_err(|error| format!("{one}, its one path: {error}"))?)
        }
        several => Err(format!(
            "it stands for {} paths (NVMe multipath: {}), and which one a transfer takes is not told",
            several.len(),
            several.join(", ")
        )),
    }
}

/// The number in a name that is a driver's and nothing but a number after that.
fn number_of<'name>(name: &'name str, driver: &str) -> Option<&'name str> {
    let digits = name.strip_prefix(driver)?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
}

/// Whether a folder of sysfs is a PCI function: domain, bus, device
/// and function, as in `0000:00:04.0`.
fn is_pci_function(name: &str) -> bool {
    let hexadecimal = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some((address, function)) = name.rsplit_once('.') else { return false };
    address.split(':').count() == 3 && address.split(':').all(hexadecimal) && hexadecimal(function)
}

/// What stands between a read and a medium.
fn behind(root: &Root, whole: &Path) -> Vec<String> {
    let mut behind = Vec::new();
    let name = last(whole).unwrap_or_default();
    let is = |driver: &str| {
        name.strip_prefix(driver).is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
    };
    let in_path = |part: &str| whole.ancestors().filter_map(last).any(|name| name.starts_with(part));
    if in_path("virtio") || is("xvd") {
        behind.push(
            "a virtual disk: whether its host reads a medium or its own memory, nothing here tells"
                .to_owned(),
        );
    }
    if let Some(file) = root.word(whole.join("loop/backing_file")) {
        let direct = root.word(whole.join("loop/dio")).as_deref() == Some("1");
        let how = if direct { "directly" } else { "through the page cache" };
        behind.push(format!("the file {file}, {how}"));
    }
    if is("ram") || is("zram") || is("nullb") || is("pmem") {
        behind.push("memory and no medium".to_owned());
    }
    behind
}

/// Interrupts that `lines` of `/proc/interrupts` have taken on all CPUs since boot; none where the
/// file is hidden or a line is gone.
pub fn interrupts_taken(root: &Root, lines: &BTreeSet<u32>) -> Option<u64> {
    let text = root.text("proc/interrupts")?;
    let mut sum = 0_u64;
    let mut found = 0;
    for line in text.lines() {
        let Some((number, rest)) = line.split_once(':') else { continue };
        if number.trim().parse().is_ok_and(|number| lines.contains(&number)) {
            let counts = rest.split_ascii_whitespace().map_while(|word| word.parse::<u64>().ok());
            sum = counts.fold(sum, u64::saturating_add);
            found += 1;
        }
    }
    // Vectors that were given out and never asked for have no line: some must be there, not all.
    (found > 0 || lines.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::recorded::{EMPTY, Recorded};

    fn use_of(recorded: &Recorded, minor: u32) -> Option<InUse> {
        in_use(&recorded.root(), 259, minor)
    }

    #[test]
    fn an_nvme_device_with_poll_queues_knows_its_interrupts_and_its_parts_are_told_from_it() {
        let recorded = Recorded::new();
        let device = read(&recorded.root(), 259, 0).unwrap();
        assert_eq!(
            (device.name.as_str(), device.polls, device.bytes),
            ("nvme0n1", Some(true), Some(64 << 20))
        );
        assert_eq!(device.interrupts, Some([31, 32, 33].into()));
        assert_eq!(interrupts_taken(&recorded.root(), &[31, 32, 33].into()), Some(511));
        let part = read(&recorded.root(), 259, 1).unwrap();
        assert_eq!(
            (part.part_of.as_deref(), part.polls, part.bytes),
            (Some("nvme0n1"), Some(true), Some(1 << 20))
        );
        let completed = completed(&recorded.root(), 259, 0).unwrap();
        assert_eq!(completed, Completed { reads: 100, others: 30 });
    }

    #[test]
    fn interrupts_without_a_pci_function_are_found_by_the_drivers_name() {
        let recorded = Recorded::new();
        let interrupts = |major, minor| read(&recorded.root(), major, minor).unwrap().interrupts;
        assert_eq!(interrupts(254, 0), Some([12].into()));
        assert_eq!(interrupts(259, 5), Some([40].into()));
        assert_eq!(interrupts(251, 0), Some(BTreeSet::new()), "null_blk has none");
        recorded.write("proc/interrupts", "           CPU0\n 12:  3  virtio-mmio  virtio9-req.0\n");
        assert_eq!(interrupts(254, 0), None);
    }

    /// The interrupts of a bridge are hot-plug events of the bus: with them every device behind it
    /// was "proven" to be polled.
    #[test]
    fn a_bridges_interrupts_are_not_those_of_a_device_behind_it() {
        let recorded = Recorded::new();
        let bridge = "sys/devices/pci0000:00/0000:00:1c.0";
        recorded.device(&format!("{bridge}/0000:02:00.0/nvme/nvme3/nvme3n1"), "259:9", "0");
        recorded.write(&format!("{bridge}/msi_irqs/24"), "msi");
        let device = || read(&recorded.root(), 259, 9).unwrap();
        assert_eq!(device().interrupts, None);
        let why = device().interrupts_hidden.unwrap();
        assert_eq!(why, "/proc/interrupts has none that is called nvme3q...");
        // Where it has some of its own, it is those.
        recorded.write(&format!("{bridge}/0000:02:00.0/msi_irqs/51"), "msix");
        assert_eq!((device().interrupts, device().interrupts_hidden), (Some([51].into()), None));
    }

    /// The number in the name of a namespace was taken for its controller's.
    #[test]
    fn of_several_paths_to_a_namespace_each_has_its_interrupts_and_what_stands_for_all_has_none() {
        let recorded = Recorded::new();
        recorded.device("sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n2", "259:7", "0");
        let path = "sys/devices/pci0000:00/0000:00:06.0/nvme/nvme0/nvme1c0n2";
        recorded.device(path, "259:8", "0");
        let device = |minor| read(&recorded.root(), 259, minor).unwrap();
        assert_eq!(device(7).interrupts, None);
        assert!(device(7).interrupts_hidden.unwrap().contains("no controller"));
        let controller = |name: &str, of: &str| {
            let link = format!("sys/devices/virtual/nvme-subsystem/nvme-subsys1/{name}");
            symlink(recorded.root().path(of), recorded.root().path(link)).unwrap();
        };
        // Any drive with two ports is such a subsystem, and was refused with one of them in use.
        controller("nvme0", "sys/devices/pci0000:00/0000:00:06.0/nvme/nvme0");
        assert_eq!((device(7).interrupts, device(7).interrupts_hidden), (Some([31, 32].into()), None));
        controller("nvme1", "sys/devices/pci0000:00/0000:00:05.0/nvme/nvme1");
        assert_eq!(device(7).interrupts, None);
        assert!(device(7).interrupts_hidden.unwrap().contains("2 paths (NVMe multipath: nvme0, nvme1)"));
        // By its controller nvme0 and not by nvme1, which is another with interrupts of its own.
        assert_eq!(device(8).interrupts, Some([31, 32].into()));
    }

    #[test]
    fn what_stands_before_a_medium_is_told() {
        let recorded = Recorded::new();
        let behind = |major, minor| read(&recorded.root(), major, minor).unwrap().behind.join(";");
        assert!(behind(254, 0).contains("virtual disk"));
        assert_eq!(behind(7, 0), "the file /root/disk.img, through the page cache");
        assert_eq!(behind(251, 0), "memory and no medium");
        assert_eq!(behind(259, 0), "");
        assert_eq!(read(&recorded.root(), 0, 45), None, "tmpfs has no device");
    }

    #[test]
    fn only_a_whole_device_that_nobody_uses_may_be_written() {
        let recorded = Recorded::new();
        assert_eq!(use_of(&recorded, 5), None);
        assert!(
            matches!(use_of(&recorded, 0), Some(InUse::Partitioned { parts, .. }) if parts == "nvme0n1p1")
        );
        assert!(matches!(use_of(&recorded, 1), Some(InUse::Part { of, .. }) if of == "nvme0n1"));
        assert!(matches!(in_use(&recorded.root(), 254, 0), Some(InUse::Mounted { on, .. }) if on == "/"));
        assert!(
            matches!(use_of(&recorded, 77), Some(InUse::Unknown { .. })),
            "what is not there is not free"
        );

        let with = |path: &str, text: &str| {
            let recorded = Recorded::new();
            recorded.write(path, text);
            use_of(&recorded, 5).map(|reason| reason.to_string())
        };
        let held = with(&format!("{EMPTY}/holders/dm-0"), "").unwrap();
        assert!(held.contains("held by dm-0"), "{held}");
        let swapped = with("proc/swaps", "Filename Type\n/dev/nvme1n1 partition 1 0 -2\n").unwrap();
        assert!(swapped.contains("swapped"), "{swapped}");
        // btrfs is mounted under a number of its own.
        let btrfs = with("proc/self/mountinfo", "30 1 0:27 / /data rw - btrfs /dev/nvme1n1 rw\n").unwrap();
        assert!(btrfs.contains("mounted on /data"), "{btrfs}");
        let read_only = with(&format!("{EMPTY}/ro"), "1").unwrap();
        assert!(read_only.contains("read-only"), "{read_only}");
    }

    #[test]
    fn a_mounted_part_protects_the_whole_device() {
        let recorded = Recorded::new();
        recorded.write("proc/self/mountinfo", "22 1 259:1 / /boot rw shared:1 - vfat /dev/nvme0n1p1 rw\n");
        assert!(matches!(use_of(&recorded, 0), Some(InUse::Mounted { name, .. }) if name == "nvme0n1p1"));
    }

    #[test]
    fn a_file_system_of_no_device_is_followed_to_its_source() {
        let recorded = Recorded::new();
        recorded.write(
            "proc/self/mountinfo",
            "30 1 0:27 / /data rw - btrfs /dev/nvme1n1 rw\n31 1 0:5 / /t rw - tmpfs tmpfs rw\n",
        );
        assert_eq!(source_of_mount(&recorded.root(), 0, 27), Some(PathBuf::from("/dev/nvme1n1")));
        assert_eq!(source_of_mount(&recorded.root(), 0, 5), None);
    }
}
