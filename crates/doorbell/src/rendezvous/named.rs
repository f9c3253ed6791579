// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rendezvous by a file name, for processes that cannot pass descriptors.
//!
//! The **owner** makes the file (best in `/dev/shm`) and holds a lock on it while it lives; others join it. The lock is
//! the kernel's: it goes with the owner, however it ends, and so there is never a doubt whether a file is stale. The
//! next owner replaces a stale one.
//!
//! A lock cannot be waited for together with other things. So the owner also keeps the writing end of a FIFO beside the
//! file open (its name is the file's with the file's inode number behind it); those who joined hold the reading end,
//! and its hang-up is the owner's end.
//!
//! The file's room on its disk is taken when it is made; where there is too little, that is an error. (A disk that compresses,
//! or that writes each change to a new place, gives no such promise. Nor is a name to be had on hugetlbfs.)
//!
//! What this way lacks: both files stay when the owner is killed; the memory has no seals, so whoever may write it can
//! cut it off, and all who map it die of SIGBUS (hence [`Trusted`] only, by an `unsafe` promise); there are no eventfds, so
//! nobody can wait in an event loop; and the owner is not told when a joiner dies. Prefer [`socket`](super::socket).
//!
//! Nobody joins a file that others than its owner may write, nor one of another user than those asked for: by default this
//! process's own and root.

use super::{ConnectionHold, Offer, RendezvousError, Segment, Side, Users, os};
use crate::bell_state::initialise_semaphores;
use crate::descriptor;
use crate::holder::Holder;
use crate::mapping::{MapError, Mapping, is_huge};
use crate::memory_options::apply;
use crate::peer::{PeerId, Trusted};
use crate::process::Process;
use crate::tokens::Files;
use doorbell_core::layout::{MAKER, Plan};
use rustix::fd::OwnedFd;
use rustix::fs::{
    CWD, FallocateFlags, FileType, Mode, OFlags, fallocate, fstat, link, mknodat, open, stat, unlink,
};
use rustix::io::{Errno, pwrite, retry_on_intr};
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The segment under a name, held by its owner. Dropping it removes the file.
#[derive(Debug)]
pub struct Owner {
    segment: Arc<Segment>,
    path: PathBuf,
    /// A forked child has a copy, and its parent goes on.
    process: Process,
    /// Carries the lock.
    file: OwnedFd,
    /// Hangs up when closed.
    _life: Life,
}

/// The writing end of the FIFO whose hang-up tells of the owner's end.
#[derive(Debug)]
struct Life {
    path: PathBuf,
    /// As the owner's.
    process: Process,
    _fifo: OwnedFd,
}

/// The segment under a name, as one who joined sees it. Ends of channels that were taken there, and bells with a waiter slot, go
/// on without it, and hear of the owner's end.
#[derive(Debug)]
pub struct Joined {
    hold: Arc<ConnectionHold>,
    trust: PhantomData<Trusted>,
}

impl Owner {
    /// Makes the file `path`, readable and writable for this user, and owns it.
    ///
    /// `offer.eventfds` must be 0: there is no way to hand them over.
    ///
    /// # Safety
    /// Whoever opens the file until the last who maps it is gone follows the protocol, and nobody makes the file shorter. The
    /// file's rights admit this user's processes, and root's.
    ///
    /// # Errors
    /// [`RendezvousError::Owned`] if it has a living owner, or somebody is becoming that; [`RendezvousError::TooMany`]; [`RendezvousError::Map`]; [`RendezvousError::Os`].
    pub unsafe fn new(path: impl AsRef<Path>, offer: &Offer) -> Result<Self, RendezvousError> {
        let path = path.as_ref();
        if offer.eventfds != 0 {
            return Err(RendezvousError::TooMany { bells: offer.bells, eventfds: offer.eventfds, most: 0 });
        }
        loop {
            remove_what_a_dead_owner_left_at(path, path)?;
            let making = with_suffix(path, &format!("{}.new", std::process::id()));
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = match open(&making, flags, Mode::RUSR | Mode::WUSR) {
                // One of our number was killed at this, perhaps in an earlier life of the container.
                Err(Errno::EXIST) => {
                    remove_what_a_dead_owner_left_at(&making, path)?;
                    continue;
                }
                file => file.map_err(os("open"))?,
            };
            let lock = descriptor::duplicate(&file).map_err(os("F_DUPFD_CLOEXEC"))?;
            // Before anything that takes time. One of our number, in another thread or PID namespace, may have taken it for
            // what a dead one left, and removed it; from here on nobody does.
            if !try_lock(&lock)? || !is_at(&lock, &making)? {
                continue;
            }
            let made = Self::fill(file, &lock, offer, path, &making);
            // It has its second name, or is not wanted. While it is locked: the next file of this name is another's.
            let _ = unlink(&making);
            match made {
                // Another owner came first: it lives, or what it left is removed in the next turn.
                Err(RendezvousError::Os { call: "link", errno: Errno::EXIST }) => {}
                made => {
                    let (segment, life) = made?;
                    let (path, process) = (path.to_owned(), Process::current());
                    return Ok(Self { segment: Arc::new(segment), path, process, file: lock, _life: life });
                }
            }
        }
    }

    /// Makes the segment in `file`, which is `making` and locked by `lock`, and names it `path`.
    fn fill(
        file: OwnedFd,
        lock: &OwnedFd,
        offer: &Offer,
        path: &Path,
        making: &Path,
    ) -> Result<(Segment, Life), RendezvousError> {
        let features = offer.features | super::c_library_feature();
        let plan = Plan::new(offer.bells, offer.payload, features).map_err(MapError::from)?;
        reserve(&file, plan.size())?;
        let life = Life::begin(life_path(path, lock)?)?;
        let mapping = Mapping::of_new_file(file, plan, plan.size())?;
        initialise_semaphores(&mapping);
        if let Some(lanes) = &offer.lanes {
            crate::channel::write_directory(&mapping, lanes, 0)?;
        }
        let refused = apply(&mapping, &offer.memory);
        let mut segment = Segment::assemble(mapping, no_eventfds(plan.bells), Holder::Given(MAKER))?;
        segment.refused = refused;
        // Unlike a rename, a link replaces nobody.
        link(making, path).map_err(os("link"))?;
        Ok((segment, life))
    }

    /// The segment.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Somebody may have removed it, and another owner be there now. None comes in between: we still hold the lock.
        if self.process.is_current() && is_at(&self.file, &self.path) == Ok(true) {
            let _ = unlink(&self.path);
        }
    }
}

impl Life {
    fn begin(path: PathBuf) -> Result<Self, RendezvousError> {
        // The inode number in the name is ours alone: what is there was left by a dead owner of a file now gone.
        let _ = unlink(&path);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).map_err(os("mkfifo"))?;
        // Both ways: for writing alone it would wait for a reader.
        let opened = open(&path, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())
            .and_then(descriptor::kept);
        match opened {
            Ok(fifo) => Ok(Self { path, process: Process::current(), _fifo: fifo }),
            Err(errno) => {
                let _ = unlink(&path);
                Err(RendezvousError::Os { call: "open(fifo)", errno })
            }
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if self.process.is_current() {
            let _ = unlink(&self.path);
        }
    }
}

/// The name of the FIFO that belongs to `file`, which is or will be at `path`.
fn life_path(path: &Path, file: &OwnedFd) -> Result<PathBuf, RendezvousError> {
    Ok(with_suffix(path, &fstat(file).map_err(os("fstat"))?.st_ino.to_string()))
}

/// Gives `file` its size and all the room that it needs: on a full disk the first touch of a page without would be a SIGBUS.
fn reserve(file: &OwnedFd, size: u64) -> Result<(), RendezvousError> {
    descriptor::may_have_size(size).map_err(os("fallocate"))?;
    // It takes any size, and then does not unmap what is not a whole number of its pages.
    if is_huge(file)? {
        return Err(os("fallocate(hugetlbfs)")(Errno::OPNOTSUPP));
    }
    // tmpfs gives back all that one call took when a signal comes: a timer's signals would keep a long call from ever ending.
    const AT_ONCE: u64 = 2 << 20;
    let mut at = 0;
    while at < size {
        let length = AT_ONCE.min(size - at);
        match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), at, length)) {
            // A file system that knows no reservation, as ramfs.
            Err(Errno::OPNOTSUPP) => return write_zeroes(file, size),
            result => result.map_err(os("fallocate"))?,
        }
        at += length;
    }
    Ok(())
}

fn write_zeroes(file: &OwnedFd, size: u64) -> Result<(), RendezvousError> {
    let zeroes = [0; 1 << 16];
    let mut at = 0;
    while at < size {
        let most = zeroes.len().min(usize::try_from(size - at).unwrap_or(usize::MAX));
        match retry_on_intr(|| pwrite(file, &zeroes[..most], at)).map_err(os("pwrite"))? {
            0 => return Err(os("pwrite")(Errno::NOSPC)),
            written => at += written as u64,
        }
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{suffix}"));
    name.into()
}

/// Removes the file at `there`, which a dead owner of `path` left, and its FIFO. Whoever removes a file holds its lock: an
/// owner that lives loses nothing.
fn remove_what_a_dead_owner_left_at(there: &Path, path: &Path) -> Result<(), RendezvousError> {
    let file = match open(there, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        result => result.map_err(os("open"))?,
    };
    if !try_lock(&file)? {
        return Err(RendezvousError::Owned);
    }
    if is_at(&file, there)? {
        let _ = unlink(life_path(path, &file)?);
        unlink(there).map_err(os("unlink"))?;
    }
    Ok(())
}

/// Joins the segment named `path`, whose owner must be a process of this one's user or root's.
///
/// # Safety
/// As [`Owner::new`].
///
/// # Errors
/// As [`join_of`].
pub unsafe fn join(path: impl AsRef<Path>) -> Result<Joined, RendezvousError> {
    // SAFETY: the caller's promise.
    unsafe { join_of(path, &Users::Same) }
}

/// Joins the segment named `path`, whose owner must be one of `owners`. ([`Users::Chosen`] admits nobody here: of a file the
/// kernel names no process.)
///
/// # Safety
/// As [`Owner::new`].
///
/// # Errors
/// [`RendezvousError::NoOwner`] if there is none, or it is dead; [`RendezvousError::OtherUser`] if the file is another user's;
/// [`RendezvousError::Writable`] if more than its owner may write it; [`RendezvousError::Map`]; [`RendezvousError::Os`].
pub unsafe fn join_of(path: impl AsRef<Path>, owners: &Users) -> Result<Joined, RendezvousError> {
    let path = path.as_ref();
    let no_owner = |call| {
        move |errno| match errno {
            Errno::NOENT => RendezvousError::NoOwner,
            errno => RendezvousError::Os { call, errno },
        }
    };
    let flags = OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = open(path, OFlags::RDWR | flags, Mode::empty()).map_err(no_owner("open"))?;
    // Before it is mapped: who may cut it off can kill us.
    check_owner(&file, owners)?;
    let life = life_path(path, &file)?;
    let life =
        open(life, OFlags::RDONLY | OFlags::NONBLOCK | flags, Mode::empty()).and_then(descriptor::kept);
    let life = life.map_err(no_owner("open(fifo)"))?;
    // Only with a writer does a FIFO promise that there will be more to read. From here on its end is a hang-up.
    match rustix::io::read(&life, &mut [0; 1]) {
        Err(Errno::AGAIN) => {}
        _ => return Err(RendezvousError::NoOwner),
    }
    let mapping = Mapping::of_existing_file(file)?;
    let bells = mapping.plan().bells;
    let holder = mapping.next_holder();
    let segment = Arc::new(Segment::assemble(mapping, no_eventfds(bells), Holder::Given(holder))?);
    let under = segment.admit::<Trusted>()?;
    segment.lives.met();
    let hold = segment.watch_over(PeerId::UNMET, life, under, MAKER, Side::Joiner)?;
    segment.origin.set(Arc::<ConnectionHold>::downgrade(&hold));
    Ok(Joined { hold, trust: PhantomData })
}

impl Joined {
    /// The segment.
    pub fn segment(&self) -> &Arc<Segment> {
        self.hold.segment()
    }
}

/// Nobody but its owner may write `file`, who must be one of `owners`.
fn check_owner(file: &OwnedFd, owners: &Users) -> Result<(), RendezvousError> {
    let there = fstat(file).map_err(os("fstat"))?;
    if !owners.has(there.st_uid) {
        return Err(Users::refusal(there.st_uid));
    }
    let mode = Mode::from_raw_mode(there.st_mode);
    if mode.intersects(Mode::WGRP | Mode::WOTH) && !matches!(owners, Users::Anyone) {
        return Err(RendezvousError::Writable { mode: mode.as_raw_mode() });
    }
    Ok(())
}

fn no_eventfds(bells: u32) -> Vec<Files> {
    (0..bells).map(|_| Files::default()).collect()
}

/// Is `file` what `path` names now?
pub(super) fn is_at(file: &OwnedFd, path: &Path) -> Result<bool, RendezvousError> {
    let held = fstat(file).map_err(os("fstat"))?;
    match stat(path) {
        Ok(named) => Ok((named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(RendezvousError::Os { call: "stat", errno }),
    }
}

/// Takes the owner's lock. `false` if somebody holds it.
///
/// An open-file-description lock: unlike a POSIX lock it does not go when another descriptor of the file is closed.
pub(super) fn try_lock(file: &OwnedFd) -> Result<bool, RendezvousError> {
    // SAFETY: all bytes zero is a value of this plain struct.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_len = 1;
    // SAFETY: `lock` is valid for the call.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut lock) } == 0 {
        return Ok(true);
    }
    match Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO) {
        Errno::AGAIN | Errno::ACCESS => Ok(false),
        errno => Err(RendezvousError::Os { call: "F_OFD_SETLK", errno }),
    }
}
