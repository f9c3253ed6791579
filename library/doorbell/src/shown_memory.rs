// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that other processes have open, as it shows among the links in `/proc/PID/fd`.
//!
//! What a link says is its owner's to choose: a file of any kind can be named like our memory, in a
//! mount namespace or before the look, and be exchanged after it. And opening one may wait for
//! ever, as that of a FIFO does. So a link is only held at first, what is held is looked at, and it
//! is opened if it is memory. This is the only way in which links of other processes are opened.

use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, FileType, MemfdFlags, Mode, OFlags, StatxFlags, memfd_create, open, readlinkat, statx,
};
use rustix::io::Errno;
use rustix::path::DecInt;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What a link to memory says before its name, and after it.
const BEFORE: &str = "/memfd:";
const AFTER: &str = " (deleted)";

/// Memory of memfd_create(2), held and not opened.
pub(crate) struct ShownMemory {
    held: OwnedFd,
    /// What it is called.
    pub(crate) name: String,
    /// Its number; no other memory has the same at the same time.
    pub(crate) inode: u64,
}

impl ShownMemory {
    /// What is behind `link` in `/proc/PID/fd`, if that is memory
    /// whose name begins with `prefix`. It waits for nobody.
    pub(crate) fn behind(link: &Path, prefix: &str) -> Option<Self> {
        // Most links are sorted out here, at the price of one call.
        name_behind(link).filter(|name| name.starts_with(prefix))?;
        let held = open(link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let (device, inode) = device_and_inode(&held).ok()?;
        if Some(device) != device_of_memory() {
            return None;
        }
        // That of what is held, which may be another than the link led to before.
        let name = name_behind(&own_link(&held)).filter(|name| name.starts_with(prefix))?;
        Some(Self { held, name, inode })
    }

    /// Opens it for reading.
    pub(crate) fn open(&self) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Some(File::from(open(own_link(&self.held), flags, Mode::empty()).ok()?))
    }
}

fn name_behind(link: &Path) -> Option<String> {
    let text = readlinkat(CWD, link, Vec::new()).ok()?.into_bytes();
    let text = std::ffi::OsString::from_vec(text).into_string().ok()?;
    let name = text.strip_prefix(BEFORE)?;
    Some(name.strip_suffix(AFTER).unwrap_or(name).to_owned())
}

/// Leads to the file itself, whatever has its name by now (proc_pid_fd(5)).
fn own_link(held: &OwnedFd) -> PathBuf {
    Path::new("/proc/self/fd").join(DecInt::from_fd(held))
}

/// The device, major and minor, and the number of a regular file, as
/// they are known without asking a server for them.
fn device_and_inode(file: &OwnedFd) -> Result<((u32, u32), u64), Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let data = statx(file, c"", flags, StatxFlags::TYPE | StatxFlags::INO)?;
    if FileType::from_raw_mode(data.stx_mode.into()) != FileType::RegularFile {
        return Err(Errno::INVAL);
    }
    Ok(((data.stx_dev_major, data.stx_dev_minor), data.stx_ino))
}

/// The device that all memory of memfd_create(2) is on: a mount of the kernel's own, in which
/// nobody can make a name. Huge pages are on others, and not looked into.
fn device_of_memory() -> Option<(u32, u32)> {
    static DEVICE: OnceLock<Option<(u32, u32)>> = OnceLock::new();
    *DEVICE.get_or_init(|| {
        let memory = memfd_create("doorbell-device", MemfdFlags::CLOEXEC).ok()?;
        Some(device_and_inode(&memory).ok()?.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::mkfifoat;
    use std::os::fd::AsRawFd;

    fn link(file: &OwnedFd) -> PathBuf {
        own_link(file)
    }

    #[test]
    fn memory_is_seen_and_read_and_what_is_called_otherwise_is_not() {
        let memory = memfd_create("doorbell-seen", MemfdFlags::CLOEXEC).unwrap();
        rustix::io::write(&memory, b"here").unwrap();
        let seen = ShownMemory::behind(&link(&memory), "doorbell-").unwrap();
        assert_eq!(seen.name, "doorbell-seen");
        let mut bytes = [0; 4];
        std::os::unix::fs::FileExt::read_exact_at(&seen.open().unwrap(), &mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"here");
        assert!(ShownMemory::behind(&link(&memory), "other").is_none());
    }

    /// Of any file that is called as memory is, as one in a mount namespace can be: a FIFO's would
    /// wait for ever to be opened.
    #[test]
    fn a_file_that_is_no_memory_is_not_opened_whatever_it_is_called() {
        let folder = std::env::temp_dir().join(format!("doorbell-shown-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let fifo = folder.join("fifo");
        mkfifoat(CWD, &fifo, Mode::from_raw_mode(0o600)).unwrap();
        let file = folder.join("file");
        std::fs::write(&file, "").unwrap();
        for path in [&fifo, &file, &folder] {
            let held = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
            assert_ne!(
                device_and_inode(&held).ok().map(|(device, _)| device),
                device_of_memory(),
                "{path:?}"
            );
            assert!(ShownMemory::behind(&link(&held), "").is_none(), "{}", held.as_raw_fd());
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
