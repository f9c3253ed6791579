// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets of a rendezvous, and what the kernel says of who sent them.

use super::patience::{JOIN_PATIENCE, Patience};
use super::{Connection, RendezvousError, os};
use crate::descriptor;
use crate::errno::checked;
use crate::peer::{Peer, PeerId, Trust};
use doorbell_core::layout::{MAJOR, MINOR};
use doorbell_core::violation::PeerViolation;
use rustix::cmsg_space;
use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

pub(super) const HELLO: u64 = u64::from_ne_bytes(*b"DBHELLO1");
pub(super) const OFFER: u64 = u64::from_ne_bytes(*b"DBOFFER1");
pub(super) const VERDICT: u64 = u64::from_ne_bytes(*b"DBVERDT1");
const MORE: u64 = u64::from_ne_bytes(*b"DBMORE01");
const LOG: u64 = u64::from_ne_bytes(*b"DBLOG002");
pub(super) const END: u64 = u64::from_ne_bytes(*b"DBEND001");
/// A verdict; any other is a [`Reason`](super::Reason).
pub(super) const ACCEPTED: u64 = 0;

/// `SCM_MAX_FD` of net/scm.h: so many descriptors go with one packet.
const MOST_AT_ONCE: usize = 253;

pub(super) fn our_version() -> u64 {
    u64::from(MAJOR) << 32 | u64::from(MINOR)
}

impl<T: Trust> Connection<T> {
    /// Sends the peer the log of a broadcast, for whom, and where in it to begin.
    pub(crate) fn send_log(
        &self,
        lane: u32,
        cursor: u64,
        published: u64,
        log: BorrowedFd<'_>,
    ) -> Result<(), RendezvousError> {
        send(self.hold.file(), &[LOG, lane.into(), cursor, published], &[log])
    }

    /// Receives what `send_log` sent: lane, cursor, number, log. Waits for it as long as for the
    /// packets of a rendezvous.
    pub(crate) fn receive_log(&self) -> Result<(u64, u64, u64, OwnedFd), RendezvousError> {
        let mut descriptors = Vec::new();
        let patience = Patience::of(JOIN_PATIENCE);
        let [magic, lane, cursor, published] = receive(self.hold.file(), &mut descriptors, &patience)?;
        expect("log", magic, LOG)?;
        let got = descriptors.len() as u64;
        let violation = RendezvousError::Violation(PeerViolation::Descriptors { got, announced: 1 });
        let log = descriptors.pop().filter(|_| got == 1).ok_or(violation)?;
        Ok((lane, cursor, published, log))
    }
}

pub(super) fn expect(field: &'static str, value: u64, wanted: u64) -> Result<(), RendezvousError> {
    if value == wanted {
        return Ok(());
    }
    Err(RendezvousError::Violation(PeerViolation::BadValue { field, value }))
}

pub(super) fn send(
    socket: impl AsFd,
    words: &[u64],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), RendezvousError> {
    send_with(socket, words, descriptors, SendFlags::NOSIGNAL)
}

/// As `send`, but does not wait: [`RendezvousError::NoAnswer`] of `EAGAIN` if there is no room.
pub(super) fn send_at_once(
    socket: impl AsFd,
    words: &[u64],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), RendezvousError> {
    send_with(socket, words, descriptors, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
}

fn send_with(
    socket: impl AsFd,
    words: &[u64],
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> Result<(), RendezvousError> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_AT_ONCE))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(&bytes)], &mut control, flags))
        .map_err(no_answer("sendmsg"))?;
    Ok(())
}

/// As `send`, and as many packets more as the descriptors need.
pub(super) fn send_all(
    socket: impl AsFd,
    words: &[u64],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), RendezvousError> {
    let (first, more) = descriptors.split_at(descriptors.len().min(MOST_AT_ONCE));
    send(socket.as_fd(), words, first)?;
    more.chunks(MOST_AT_ONCE).try_for_each(|some| send(socket.as_fd(), &[MORE], some))
}

/// Receives the packets after the first one, until there are as many
/// `descriptors` as were `announced`, or more.
pub(super) fn receive_more(
    socket: impl AsFd,
    descriptors: &mut Vec<OwnedFd>,
    announced: u64,
    patience: &Patience<'_>,
) -> Result<(), RendezvousError> {
    // As many as fit came with the first, or there are no more.
    while descriptors.len().is_multiple_of(MOST_AT_ONCE)
        && (1..announced).contains(&(descriptors.len() as u64))
    {
        let before = descriptors.len();
        let [magic] = receive(socket.as_fd(), descriptors, patience)?;
        expect("more", magic, MORE)?;
        if descriptors.len() == before {
            break;
        }
    }
    Ok(())
}

/// Waits for one packet of exactly `N` words, and receives it and
/// whatever descriptors come with it.
pub(super) fn receive<const N: usize>(
    socket: impl AsFd,
    descriptors: &mut Vec<OwnedFd>,
    patience: &Patience<'_>,
) -> Result<[u64; N], RendezvousError> {
    loop {
        if let Some(meanwhile) = patience.meanwhile {
            meanwhile();
        }
        if let Some(packet) = try_receive(&socket, descriptors)? {
            return Ok(packet);
        }
        patience.wait(&socket)?;
    }
}

/// As `receive`, but does not wait. `None` if there is no packet yet.
pub(super) fn try_receive<const N: usize>(
    socket: &impl AsFd,
    descriptors: &mut Vec<OwnedFd>,
) -> Result<Option<[u64; N]>, RendezvousError> {
    let mut bytes = [0; 64];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_AT_ONCE))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let mut receive =
        || retry_on_intr(|| recvmsg(socket.as_fd(), &mut [IoSliceMut::new(&mut bytes)], &mut control, flags));
    let message = match receive() {
        Err(Errno::AGAIN) => return Ok(None),
        // Whoever refuses says why, and hangs up on what it has not read: the kernel tells of that first.
        Err(Errno::CONNRESET) => receive().map_err(|errno| match errno {
            Errno::AGAIN => RendezvousError::NoAnswer(Errno::CONNRESET),
            errno => no_answer("recvmsg")(errno),
        })?,
        result => result.map_err(no_answer("recvmsg"))?,
    };
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            for file in files {
                descriptors.push(descriptor::kept(file).map_err(os("fcntl(F_DUPFD_CLOEXEC)"))?);
            }
        }
    }
    if message.flags.contains(ReturnFlags::CTRUNC) {
        // There is room for as many as can come: this process may not have them.
        return Err(os("recvmsg")(Errno::MFILE));
    }
    if message.bytes == 0 {
        return Err(RendezvousError::NoAnswer(Errno::CONNRESET));
    }
    if message.bytes != N * 8 {
        let violation =
            PeerViolation::LengthOutOfRange { length: message.bytes as u64, available: N as u64 * 8 };
        return Err(RendezvousError::Violation(violation));
    }
    let (words, _) = bytes.as_chunks::<8>();
    Ok(Some(std::array::from_fn(|index| words.get(index).map_or(0, |word| u64::from_ne_bytes(*word)))))
}

fn no_answer(call: &'static str) -> impl Fn(Errno) -> RendezvousError {
    move |errno| match errno {
        Errno::AGAIN | Errno::CONNRESET | Errno::PIPE => RendezvousError::NoAnswer(errno),
        errno => RendezvousError::Os { call, errno },
    }
}

/// Tells the other end why it is refused, if it takes that at once. Nothing is waited for.
pub(super) fn refuse(socket: impl AsFd, magic: u64, error: &RendezvousError) {
    let reason = error.reason().word();
    let words =
        if magic == VERDICT { vec![VERDICT, reason] } else { vec![OFFER, our_version(), 0, 0, reason] };
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    // One that has gone hears nothing more.
    let _ = rustix::net::send(socket, &bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

/// What the kernel says about the other end.
pub(super) fn peer_at(socket: &OwnedFd, child: Option<u32>) -> Result<Peer, RendezvousError> {
    let credentials = peer_credentials(socket).map_err(os("SO_PEERCRED"))?;
    let pid = child.unwrap_or_else(|| u32::try_from(credentials.pid).unwrap_or(0));
    let id = PeerId::met(pid);
    let pidfd = match child {
        // The socket pair was made by this process, and that is what the socket would answer. The child is
        // not reaped yet: the caller holds it.
        Some(pid) => i32::try_from(pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
            .and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()),
        None => peer_pidfd(socket),
    };
    Ok(Peer { id, uid: credentials.uid, gid: credentials.gid, pidfd })
}

/// Whether this very process listens at the other end.
pub(super) fn is_own(socket: &OwnedFd) -> bool {
    peer_credentials(socket).is_ok_and(|other| u32::try_from(other.pid) == Ok(std::process::id()))
}

/// `SO_PEERPIDFD`, Linux 6.5, which rustix does not wrap.
fn peer_pidfd(socket: &OwnedFd) -> Option<OwnedFd> {
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut pidfd: libc::c_int = -1;
    // SAFETY: what the option gives is an integer.
    unsafe { get_option(socket, SO_PEERPIDFD, &mut pidfd) }.ok()?;
    // SAFETY: the kernel just made this descriptor for us.
    (pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd) })
}

/// `SO_PEERCRED`. Its process number is 0 where the other end has
/// none in our PID namespace, which rustix's type excludes.
fn peer_credentials(socket: &OwnedFd) -> Result<libc::ucred, Errno> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    // SAFETY: what the option gives is a `ucred`.
    unsafe { get_option(socket, libc::SO_PEERCRED, &mut credentials) }?;
    Ok(credentials)
}

/// Reads a socket's option into `value`.
///
/// # Safety
/// Whatever the kernel writes for this option, as far as it fits, is a `T`.
unsafe fn get_option<T>(socket: &OwnedFd, option: libc::c_int, value: &mut T) -> Result<(), Errno> {
    let mut length = libc::socklen_t::try_from(size_of::<T>()).map_err(|_| Errno::INVAL)?;
    let (level, to) = (libc::SOL_SOCKET, std::ptr::from_mut(value).cast());
    // SAFETY: both pointers are valid for the call, and `length` says how large `value` is.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, to, &raw mut length) };
    checked(result).map(drop)
}
