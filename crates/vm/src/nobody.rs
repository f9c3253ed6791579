// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whom the superuser's emulator belongs to: nobody. A guest that breaks out of it then finds no file of anybody's that it may
//! write, and no process of anybody's that it may stop.

use std::fs::{self, File, metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, Mode, OFlags, fchown, memfd_create, open};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// The number of `nobody`, and of its group: the kernel's own for users that have none (user_namespaces(7), "overflow").
const NOBODY: u32 = 65534;

/// Others' part of a file's mode: to read and to write.
const OTHERS_READ_WRITE: u32 = 0o006;

/// The user that a process may become before it runs another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Nobody {
    /// The one group it keeps: that of a device it needs.
    groups: Vec<Gid>,
}

impl Nobody {
    /// For a process of the superuser that needs the device at `device`; none for another user's, which has few rights already. The
    /// superuser of a user namespace that holds no nobody is outside of it another user.
    pub(crate) fn instead_of_root(device: Option<&Path>) -> io::Result<Option<Self>> {
        if !geteuid().is_root() || !maps("/proc/self/uid_map")? || !maps("/proc/self/gid_map")? {
            return Ok(None);
        }
        let device = device.map(metadata).transpose()?;
        let closed = device.filter(|device| device.mode() & OTHERS_READ_WRITE != OTHERS_READ_WRITE);
        Ok(Some(Self { groups: closed.iter().map(|device| Gid::from_raw(device.gid())).collect() }))
    }

    /// Makes the calling thread nobody's. Only system calls are made, so that it may be called between fork and exec. The signal
    /// at a parent's death has to be asked for again afterwards.
    pub(crate) fn become_it(&self) -> io::Result<()> {
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        set_thread_groups(&self.groups)?;
        set_thread_res_gid(group, group, group)?;
        Ok(set_thread_res_uid(user, user, user)?)
    }

    /// Gives it a pipe, which only its owner may open again by its number.
    pub(crate) fn give(&self, pipe: impl AsFd) -> io::Result<()> {
        Ok(fchown(pipe, Some(Uid::from_raw(NOBODY)), Some(Gid::from_raw(NOBODY)))?)
    }
}

/// Whether a user namespace's map holds [`NOBODY`]: lines of the first number inside, outside, and how many.
fn maps(path: &str) -> io::Result<bool> {
    let text = fs::read_to_string(path)?;
    Ok(text.lines().any(|line| {
        let numbers: Vec<u64> =
            line.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect();
        matches!(numbers[..], [first, _, length] if (first..first + length).contains(&u64::from(NOBODY)))
    }))
}

/// A name for a descriptor's file that needs no right on the folders that hold it.
pub(crate) fn by_number(fd: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// A file or folder that another user can reach by number, though not the folders that hold it.
pub(crate) fn reach(path: &Path) -> io::Result<OwnedFd> {
    Ok(open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// The path by which another user can run the program at `path`, with the folder that has to stay open for it. A name without a
/// folder is looked for where programs are, which is where everybody may run them.
pub(crate) fn runnable(path: &Path) -> io::Result<(PathBuf, Option<OwnedFd>)> {
    if path.components().count() == 1 {
        return Ok((path.to_owned(), None));
    }
    let path = path.canonicalize()?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let folder = reach(folder)?;
    Ok((Path::new(&by_number(&folder)).join(name), Some(folder)))
}

/// A copy of a file that every user can read by its number, whoever may read the file.
pub(crate) fn copy_in_memory(path: &Path) -> io::Result<OwnedFd> {
    let mut copy = File::from(memfd_create("copy", MemfdFlags::CLOEXEC)?);
    io::copy(&mut File::open(path)?, &mut copy)?;
    Ok(copy.into())
}
