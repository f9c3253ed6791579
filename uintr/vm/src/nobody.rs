// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whom the superuser's emulator belongs to: nobody. A guest that breaks out of it then finds no
//! file of anybody's that it may write, and no process of anybody's that it may stop.

use std::fs::{File, metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, fchown, memfd_create, open};
use rustix::io::Errno;
use rustix::mount::{OpenTreeFlags, open_tree};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// The number of `nobody`, and of its group: the kernel's own for users that have none
/// (user_namespaces(7), "overflow").
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
    /// For a process of the superuser that needs the device at `device`; none for another user's,
    /// which has few rights already. The superuser of a user namespace that holds no nobody is
    /// outside of it another user.
    pub(crate) fn instead_of_root(device: Option<&Path>) -> io::Result<Option<Self>> {
        if !geteuid().is_root() || !maps("/proc/self/uid_map")? || !maps("/proc/self/gid_map")? {
            return Ok(None);
        }
        let device = device.map(metadata).transpose()?;
        let closed = device.filter(|device| device.mode() & OTHERS_READ_WRITE != OTHERS_READ_WRITE);
        Ok(Some(Self { groups: closed.iter().map(|device| Gid::from_raw(device.gid())).collect() }))
    }

    /// Makes the calling thread nobody's. Only system calls are made,
    /// so that it may be called between fork and exec. The signal at
    /// a parent's death has to be asked for again afterwards.
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

/// Whether a user namespace's map holds [`NOBODY`]: lines of the
/// first number inside, outside, and how many.
fn maps(path: &str) -> io::Result<bool> {
    let text = doorbell_files::kernel(path)?;
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

/// A folder as a mount of its own, which another user can reach by number: nothing is above it,
/// where from the folder itself a way leads up into folders that are closed to him. The superuser
/// of a container may make no mounts; there it is the folder itself.
pub(crate) fn apart(folder: &Path) -> io::Result<OwnedFd> {
    match open_tree(CWD, folder, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC) {
        Err(Errno::PERM | Errno::NOSYS) => reach(folder),
        made => Ok(made?),
    }
}

/// The path by which another user can run the program at `path`, with the file
/// that has to stay open for it: that one alone, and not its folder, from which
/// a way leads up into folders that are closed to him. A name without a folder
/// is looked for where programs are, which is where everybody may run them.
pub(crate) fn program_for_all(path: &Path) -> io::Result<(PathBuf, Option<OwnedFd>)> {
    if path.components().count() == 1 {
        return Ok((path.to_owned(), None));
    }
    let program = reach(path)?;
    if File::from(program.try_clone()?).metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok((by_number(&program).into(), Some(program)))
}

/// A copy of a file that every user can read by its number, whoever may read the file.
pub(crate) fn copy_in_memory(path: &Path) -> io::Result<OwnedFd> {
    let mut copy = File::from(memfd_create("copy", MemfdFlags::CLOEXEC)?);
    io::copy(&mut doorbell_files::open(path)?, &mut copy)?;
    Ok(copy.into())
}

#[cfg(test)]
mod tests {
    use rustix::fs::{AtFlags, fstat, statat};

    use super::*;

    /// From the folder of its firmware the superuser's emulator, though nobody's, could read what
    /// lies beside it in his home.
    #[test]
    fn no_way_leads_up_from_the_folder_that_an_emulator_inherits() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("firmware");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("bios"), "bios").unwrap();
        if open_tree(CWD, &folder, OpenTreeFlags::OPEN_TREE_CLONE).is_err() {
            doorbell_skipped::skip("mounts cannot be made here");
            return;
        }
        let held = apart(&folder).unwrap();
        let up = statat(&held, "..", AtFlags::empty()).unwrap();
        assert_eq!(up.st_ino, fstat(&held).unwrap().st_ino);
        assert_eq!(std::fs::read(Path::new(&by_number(&held)).join("bios")).unwrap(), b"bios");
    }

    #[test]
    fn of_a_program_the_file_alone_is_held() {
        let (path, held) = program_for_all(Path::new("/bin/true")).unwrap();
        let held = held.unwrap();
        assert_eq!(path, Path::new(&by_number(&held)));
        assert!(File::from(held).metadata().unwrap().is_file());
        assert_eq!(program_for_all(Path::new("qemu")).unwrap().0, Path::new("qemu"));
        assert!(program_for_all(Path::new("/bin")).is_err(), "a folder");
    }
}
