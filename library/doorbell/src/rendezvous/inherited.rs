// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rendezvous of a parent with the child it starts.
//!
//! The parent makes a socket pair and leaves one end open for the child, whose
//! environment says which descriptor it is and which socket (`DOORBELL_FD`): a
//! program that inherits the variable and not the socket, as a grandchild
//! does, inherits nothing. Then both meet over it as over any [`socket`].
//!
//! ```no_run
//! use doorbell::rendezvous::{Offer, RendezvousError, Segment, inherited};
//! use std::process::Command;
//! use std::sync::Arc;
//!
//! // The parent:
//! let segment = Arc::new(Segment::new(&Offer::default())?);
//! let mut command = Command::new("./child");
//! let offer = inherited::offer(&mut command)?;
//! let child = command.spawn().expect("./child is there");
//! let connection = offer.meet(&segment, child.id())?;
//!
//! // The child:
//! let connection = inherited::join()?;
//! # Ok::<(), RendezvousError>(())
//! ```

use super::host::host_whom;
use super::join::Join;
use super::{Connection, RendezvousError, Segment, os, socket};
use crate::environment::variable;
use crate::peer::Trust;
use rustix::fd::{FromRawFd, OwnedFd};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::SocketType;
use rustix::net::sockopt::socket_type;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The environment variable that tells the child its descriptor, and the device and inode of the
/// socket behind it: `7:8:123456`.
pub const VARIABLE: &str = "DOORBELL_FD";

/// The parent's end, until the child has been started.
#[derive(Debug)]
pub struct Pending {
    ours: OwnedFd,
    theirs: OwnedFd,
}

/// Prepares `command` so that the process it starts can [`join`]. It can be started once, and while
/// the [`Pending`] lives: after that starting it fails with EBADF.
///
/// # Errors
/// [`RendezvousError::Os`] if there is no descriptor left.
pub fn offer(command: &mut Command) -> Result<Pending, RendezvousError> {
    let pending = prepare()?;
    let number = pending.theirs.as_raw_fd();
    let meant = fstat(&pending.theirs).map_err(os("fstat"))?;
    let meant = (meant.st_dev, meant.st_ino);
    command.env(VARIABLE, pending.variable(number)?);
    // SAFETY: the closure runs between fork and exec and makes two system calls, which are
    // async-signal-safe; an error made of an error number takes no memory.
    unsafe {
        command.pre_exec(move || {
            // Whether it is open, and still the socket meant, is the first thing asked: the command may be
            // started again, or after `Pending` has gone. It cannot keep the socket itself, for
            // then the child's death would not show.
            let file = BorrowedFd::borrow_raw(number);
            let there = fstat(file)?;
            if (there.st_dev, there.st_ino) != meant {
                return Err(Errno::BADF.into());
            }
            Ok(fcntl_setfd(file, FdFlags::empty())?)
        });
    }
    Ok(pending)
}

/// As [`offer`], for a child that is started in another way: whoever starts it sees to it that
/// [`childs_end`](Pending::childs_end) is open in it and that [`VARIABLE`] has the value that
/// [`variable`](Pending::variable) says.
///
/// # Errors
/// [`RendezvousError::Os`] if there is no descriptor left.
pub fn prepare() -> Result<Pending, RendezvousError> {
    let (ours, theirs) = socket::pair()?;
    Ok(Pending { ours, theirs })
}

impl Pending {
    /// What the child inherits. Close-on-exec here.
    pub fn childs_end(&self) -> BorrowedFd<'_> {
        self.theirs.as_fd()
    }

    /// What [`VARIABLE`] must be in a child where the end is descriptor `number`.
    ///
    /// # Errors
    /// [`RendezvousError::Os`] if the end was closed behind our back.
    pub fn variable(&self, number: RawFd) -> Result<String, RendezvousError> {
        let file = fstat(&self.theirs).map_err(os("fstat"))?;
        Ok(format!("{number}:{}:{}", file.st_dev, file.st_ino))
    }

    /// Meets the child that was started, which need not be trusted. `child` is its process number.
    ///
    /// # Errors
    /// [`RendezvousError::NoAnswer`] if the child ended, or did not [`join`] within
    /// [`socket::JOIN_PATIENCE`].
    pub fn meet(self, segment: &Arc<Segment>, child: u32) -> Result<Connection, RendezvousError> {
        host_whom(self.into_ours(), segment, Some(child))
    }

    /// As [`meet`](Self::meet), with a child that is trusted if `T` says so.
    ///
    /// # Safety
    /// If `T` is [`Trusted`](crate::peer::Trusted): as [`Host::trusting`](socket::Host::trusting).
    ///
    /// # Errors
    /// As [`meet`](Self::meet).
    pub unsafe fn meet_as<T: Trust>(
        self,
        segment: &Arc<Segment>,
        child: u32,
    ) -> Result<Connection<T>, RendezvousError> {
        host_whom(self.into_ours(), segment, Some(child))
    }

    fn into_ours(self) -> OwnedFd {
        // Ours must be the only other end left, else the child's death would not show.
        drop(self.theirs);
        self.ours
    }
}

impl<T: Trust> Join<T> {
    /// Joins the parent that started this process with a [`Pending`] rendezvous. Works once.
    ///
    /// # Errors
    /// [`RendezvousError::NothingInherited`] if this process was not started by [`offer`]; else
    /// [`RendezvousError`].
    pub fn inherited(&self) -> Result<Connection<T>, RendezvousError> {
        self.over(take_socket()?)
    }
}

/// The child's part, with a parent who need not be trusted:
/// [`Join::inherited`] with nothing said. Works once.
///
/// # Errors
/// As [`Join::inherited`].
pub fn join() -> Result<Connection, RendezvousError> {
    Join::default().inherited()
}

fn take_socket() -> Result<OwnedFd, RendezvousError> {
    let value = variable(VARIABLE).and_then(|value| value.into_string().ok());
    let value = value.ok_or(RendezvousError::NothingInherited)?;
    take(&value).ok_or(RendezvousError::NothingInherited)
}

/// The descriptor that `value` names, if it is the socket meant and was not taken before.
fn take(value: &str) -> Option<OwnedFd> {
    let mut parts = value.split(':');
    let number: RawFd = parts.next()?.parse().ok().filter(|number| *number > 2)?;
    let (device, inode) = (parts.next()?.parse::<u64>().ok()?, parts.next()?.parse::<u64>().ok()?);
    // SAFETY: whether it is open is the first thing asked; and it is only asked.
    let file = unsafe { BorrowedFd::borrow_raw(number) };
    let there = fstat(file).ok()?;
    // A number of another file is another's, who may be using it.
    if (there.st_dev, there.st_ino) != (device, inode)
        || FileType::from_raw_mode(there.st_mode) != FileType::Socket
        || socket_type(file) != Ok(SocketType::SEQPACKET)
        || TAKEN.swap(true, Ordering::Relaxed)
    {
        return None;
    }
    // Nobody who comes after us in this process may take it for
    // theirs, nor does a program that is started from here.
    fcntl_setfd(file, FdFlags::CLOEXEC).ok()?;
    // SAFETY: it is the socket that was left open for whoever is
    // started with this value, and it is taken once.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

static TAKEN: AtomicBool = AtomicBool::new(false);

#[cfg(test)]
mod tests {
    use super::{offer, prepare, take};
    use rustix::io::{Errno, fcntl_dupfd_cloexec};
    use std::os::fd::{AsRawFd, IntoRawFd};
    use std::process::Command;

    /// The hook knew a bare number: by then another file had it, and the child inherited that.
    #[test]
    fn a_command_that_outlives_its_offer_does_not_start_and_hands_down_no_other_file() {
        let mut command = Command::new("true");
        let pending = offer(&mut command).unwrap();
        let number = pending.childs_end().as_raw_fd();
        drop(pending);
        assert_eq!(command.spawn().unwrap_err().raw_os_error(), Some(Errno::BADF.raw_os_error()));
        // The first free number from there on is the one, unless
        // another test has taken it: then that is as good.
        let other = prepare().unwrap();
        let _other = fcntl_dupfd_cloexec(other.childs_end(), number).unwrap();
        assert_eq!(command.spawn().unwrap_err().raw_os_error(), Some(Errno::BADF.raw_os_error()));
    }

    /// Whoever inherited the variable and not the socket took
    /// another's file for it, wrote to it and closed it.
    #[test]
    fn only_the_socket_that_is_meant_is_taken_and_only_once() {
        let pending = prepare().unwrap();
        let other = prepare().unwrap();
        let number = other.childs_end().as_raw_fd();
        // The number is open, and another socket is there.
        assert!(take(&pending.variable(number).unwrap()).is_none());
        for value in ["", "7", "7:8", "0:0:0", "-1:0:0", "a:b:c", &format!("{number}")] {
            assert!(take(value).is_none(), "{value:?}");
        }
        // The right file, but no socket.
        let (pipe, _end) = rustix::pipe::pipe().unwrap();
        let file = rustix::fs::fstat(&pipe).unwrap();
        assert!(take(&format!("{}:{}:{}", pipe.as_raw_fd(), file.st_dev, file.st_ino)).is_none());
        rustix::fs::fstat(&pipe).unwrap();
        // In the child it may have another number.
        let inherited = rustix::io::fcntl_dupfd_cloexec(pending.childs_end(), 0).unwrap().into_raw_fd();
        let value = pending.variable(inherited).unwrap();
        assert_eq!(take(&value).unwrap().as_raw_fd(), inherited);
        let inherited = rustix::io::fcntl_dupfd_cloexec(pending.childs_end(), 0).unwrap();
        assert!(take(&pending.variable(inherited.as_raw_fd()).unwrap()).is_none(), "once");
    }
}
