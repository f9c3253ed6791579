// SPDX-License-Identifier: MIT OR Apache-2.0
//! Meeting by a file name, for processes that cannot pass descriptors.
//!
//! The **owner** makes the file (best in `/dev/shm`) and holds a lock on it while it lives; others join it. The lock is
//! the kernel's: it goes with the owner, however it ends, and so there is never a doubt whether a file is stale. The
//! next owner replaces a stale one.
//!
//! What this way lacks: the file stays when the owner is killed; it has no seals, so whoever may write it can cut it
//! off, and all who map it die of SIGBUS (hence [`Trusted`] only); there are no eventfds, so nobody can wait in an
//! event loop; and the owner is not told when a joiner dies. Prefer [`socket`](super::socket).

use super::{Board, MeetError, Offer, os};
use crate::mapping::{MapError, Mapping};
use crate::memory_options::apply;
use crate::peer::{PeerId, Trusted};
use crate::site::initialise_semaphores;
use doorbell_core::layout::Plan;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, fstat, ftruncate, open, rename, stat, unlink};
use rustix::io::Errno;
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The board under a name, held by its owner. Dropping it removes the file.
#[derive(Debug)]
pub struct Owner {
    board: Arc<Board>,
    path: PathBuf,
    /// Carries the lock.
    _file: OwnedFd,
}

/// The board under a name, as one who joined sees it.
#[derive(Debug)]
pub struct Joined {
    board: Arc<Board>,
    trust: PhantomData<Trusted>,
}

impl Owner {
    /// Makes the file `path`, readable and writable for this user, and owns it.
    ///
    /// `offer.eventfds` must be 0: there is no way to hand them over.
    ///
    /// # Errors
    /// [`MeetError::Owned`] if it has a living owner; [`MeetError::TooMany`]; [`MeetError::Map`]; [`MeetError::Os`].
    pub fn new(path: impl AsRef<Path>, offer: &Offer) -> Result<Self, MeetError> {
        let path = path.as_ref().to_owned();
        if offer.eventfds != 0 {
            return Err(MeetError::TooMany { bells: offer.bells, eventfds: offer.eventfds });
        }
        // Whoever would be owner next has to hold the lock of what is there now, until the new file is in its place.
        let _predecessor = loop {
            match open(&path, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty()) {
                Err(Errno::NOENT) => break None,
                Err(errno) => return Err(MeetError::Os { call: "open", errno }),
                Ok(file) => {
                    if !try_lock(&file, libc::F_WRLCK)? {
                        if is_owned(&file)? {
                            return Err(MeetError::Owned);
                        }
                        // A joiner just heard of the last owner's death and lets go of its read lock.
                        std::thread::yield_now();
                        continue;
                    }
                    if is_at(&file, &path)? {
                        break Some(file);
                    }
                }
            }
        };
        let making = path.with_extension(format!("{}.new", std::process::id()));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = open(&making, flags, Mode::RUSR | Mode::WUSR).map_err(os("open"))?;
        let made = Self::fill(file, offer, &path, &making);
        if made.is_err() {
            // Nothing half-made is left under either name.
            let _ = unlink(&making);
        }
        made
    }

    fn fill(file: OwnedFd, offer: &Offer, path: &Path, making: &Path) -> Result<Self, MeetError> {
        let features = offer.features | super::c_library_feature();
        let plan = Plan::new(offer.bells, offer.payload, features).map_err(MapError::from)?;
        ftruncate(&file, plan.size()).map_err(os("ftruncate"))?;
        let lock = rustix::io::fcntl_dupfd_cloexec(&file, 0).map_err(os("F_DUPFD_CLOEXEC"))?;
        if !try_lock(&lock, libc::F_WRLCK)? {
            return Err(MeetError::Owned);
        }
        let mapping = Mapping::of_new_file(file, plan, plan.size())?;
        initialise_semaphores(&mapping);
        let refused = apply(&mapping, &offer.memory);
        let mut board = Board::assemble(mapping, no_eventfds(plan.bells), std::process::id());
        board.refused = refused;
        rename(making, path).map_err(os("rename"))?;
        Ok(Self { board: Arc::new(board), path: path.to_owned(), _file: lock })
    }

    /// The board.
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Somebody may have removed it already.
        let _ = unlink(&self.path);
    }
}

/// Joins the board named `path`.
///
/// A thread of this process sleeps on the owner's lock from now on, and hears of its death by getting it.
///
/// # Errors
/// [`MeetError::NoOwner`] if there is none, or it is dead; [`MeetError::Map`]; [`MeetError::Os`].
pub fn join(path: impl AsRef<Path>) -> Result<Joined, MeetError> {
    let path = path.as_ref();
    let file = match open(path, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty()) {
        Err(Errno::NOENT) => return Err(MeetError::NoOwner),
        result => result.map_err(os("open"))?,
    };
    let lock =
        open(path, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty()).map_err(os("open"))?;
    // A read lock, which all joiners can hold together once the owner's write lock is gone.
    if try_lock(&lock, libc::F_RDLCK)? {
        return Err(MeetError::NoOwner);
    }
    let mapping = Mapping::of_existing_file(file)?;
    let bells = mapping.plan().bells;
    let board = Arc::new(Board::assemble(mapping, no_eventfds(bells), std::process::id()));
    board.lives.met();
    let watched = Arc::downgrade(&board);
    std::thread::Builder::new()
        .name("doorbell-owner".into())
        .spawn(move || {
            while let Err(Errno::INTR) = lock_waiting(&lock) {}
            if let Some(board) = watched.upgrade() {
                board.peer_died(PeerId { number: 0, pid: 0 }, None);
            }
        })
        .map_err(|error| MeetError::Os {
            call: "clone",
            errno: Errno::from_io_error(&error).unwrap_or(Errno::AGAIN),
        })?;
    Ok(Joined { board, trust: PhantomData })
}

impl Joined {
    /// The board.
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }
}

fn no_eventfds(bells: u32) -> Vec<Box<[OwnedFd]>> {
    (0..bells).map(|_| Box::from([])).collect()
}

/// Is `file` what `path` names now?
fn is_at(file: &OwnedFd, path: &Path) -> Result<bool, MeetError> {
    let held = fstat(file).map_err(os("fstat"))?;
    match stat(path) {
        Ok(named) => Ok((named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(MeetError::Os { call: "stat", errno }),
    }
}

/// Open-file-description locks: unlike POSIX locks they do not go when another descriptor of the file is closed.
fn lock_command(file: &OwnedFd, command: libc::c_int, kind: libc::c_int) -> Result<libc::c_short, Errno> {
    // SAFETY: all bytes zero is a value of this plain struct.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_len = 1;
    // SAFETY: `lock` is valid for the call.
    if unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) } == 0 {
        return Ok(lock.l_type);
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}

fn try_lock(file: &OwnedFd, kind: libc::c_int) -> Result<bool, MeetError> {
    match lock_command(file, libc::F_OFD_SETLK, kind) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(errno) => Err(MeetError::Os { call: "F_OFD_SETLK", errno }),
    }
}

/// Does somebody hold the owner's lock?
fn is_owned(file: &OwnedFd) -> Result<bool, MeetError> {
    // Asks what stands against a read lock: only a write lock does.
    let against = lock_command(file, libc::F_OFD_GETLK, libc::F_RDLCK).map_err(os("F_OFD_GETLK"))?;
    Ok(libc::c_int::from(against) == libc::F_WRLCK)
}

fn lock_waiting(file: &OwnedFd) -> Result<(), Errno> {
    lock_command(file, libc::F_OFD_SETLKW, libc::F_RDLCK).map(drop)
}
