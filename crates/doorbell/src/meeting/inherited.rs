// SPDX-License-Identifier: MIT OR Apache-2.0
//! Meeting of a parent with the child it starts.
//!
//! The parent makes a socket pair and leaves one end open for the child, whose environment says which descriptor it
//! is (`DOORBELL_FD`). Then both meet over it as over any [`socket`](super::socket).
//!
//! ```no_run
//! use doorbell::meeting::{Board, MeetError, Offer, Session, inherited};
//! use std::process::Command;
//! use std::sync::Arc;
//!
//! // The parent:
//! let board = Arc::new(Board::new(&Offer::default())?);
//! let mut command = Command::new("./child");
//! let offer = inherited::offer(&mut command)?;
//! let child = command.spawn().expect("./child is there");
//! let session: Session = offer.meet(&board, child.id())?;
//!
//! // The child:
//! let session: Session = inherited::join()?;
//! # Ok::<(), MeetError>(())
//! ```

use super::{Board, MeetError, Session, os, socket};
use crate::peer::Trust;
use rustix::fd::{FromRawFd, OwnedFd};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

/// The environment variable that tells the child its descriptor.
pub const VARIABLE: &str = "DOORBELL_FD";

/// The parent's end, until the child has been started.
#[derive(Debug)]
pub struct Pending {
    ours: OwnedFd,
    theirs: OwnedFd,
}

/// Prepares `command` so that the process it starts can [`join`].
///
/// # Errors
/// [`MeetError::Os`] if there is no descriptor left.
pub fn offer(command: &mut Command) -> Result<Pending, MeetError> {
    let pending = prepare()?;
    let number = pending.theirs.as_raw_fd();
    command.env(VARIABLE, number.to_string());
    // SAFETY: the closure runs between fork and exec and makes one system call, which is async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            // Open in the forked child, for `Pending` keeps it open in the parent until after the start.
            let file = BorrowedFd::borrow_raw(number);
            Ok(fcntl_setfd(file, FdFlags::empty())?)
        });
    }
    Ok(pending)
}

/// As [`offer`], for a child that is started in another way: whoever starts it sees to it that
/// [`childs_end`](Pending::childs_end) is open in it and that [`VARIABLE`] names its number there.
///
/// # Errors
/// [`MeetError::Os`] if there is no descriptor left.
pub fn prepare() -> Result<Pending, MeetError> {
    let (ours, theirs) = socket::pair()?;
    Ok(Pending { ours, theirs })
}

impl Pending {
    /// What the child inherits. Close-on-exec here.
    pub fn childs_end(&self) -> BorrowedFd<'_> {
        self.theirs.as_fd()
    }

    /// Meets the child that was started. `child` is its process number.
    ///
    /// # Errors
    /// [`MeetError::NoAnswer`] if the child ended, or did not [`join`] within [`socket::PATIENCE`].
    pub fn meet<T: Trust>(self, board: &Arc<Board>, child: u32) -> Result<Session<T>, MeetError> {
        // Ours must be the only other end left, else the child's death would not show.
        drop(self.theirs);
        socket::host_whom(self.ours, board, Some(child))
    }
}

/// The child's part. Works once.
///
/// # Errors
/// [`MeetError::NothingInherited`] if this process was not started by [`offer`]; else [`MeetError`].
pub fn join<T: Trust>() -> Result<Session<T>, MeetError> {
    use std::sync::atomic::{AtomicBool, Ordering};
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let number: RawFd = std::env::var(VARIABLE)
        .ok()
        .and_then(|value| value.parse().ok())
        .filter(|number| *number > 2)
        .ok_or(MeetError::NothingInherited)?;
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(MeetError::NothingInherited);
    }
    // SAFETY: the number was left open for us by `offer` and is taken once; whether it is open is the first thing asked.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    match fcntl_getfd(&socket) {
        Ok(_) => fcntl_setfd(&socket, FdFlags::CLOEXEC).map_err(os("F_SETFD"))?,
        Err(_) => {
            std::mem::forget(socket);
            return Err(MeetError::NothingInherited);
        }
    }
    socket::join_over(socket)
}
