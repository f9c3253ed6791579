// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rendezvous over a Unix socket that stays open.
//!
//! ```text
//! joiner                                  host
//!   | -- hello: magic, version, features -->|
//!   |<-- offer: magic, bells, eventfds,     |
//!   |          the joiner's number, + fds --|
//!   | -- verdict: magic, 0 or 1 ----------->|
//!   |           (the socket stays open; its hang-up is the other side's death)
//! ```
//!
//! Whom the host does not want to have its memory, it sends an offer without descriptors.
//!
//! One packet each (`SOCK_SEQPACKET`), eight-byte integers in the machine's byte order. Afterwards only a
//! [publisher](crate::channel::broadcast::Publisher::admit) sends one more: the descriptor of its log.
//!
//! ```
//! use doorbell::rendezvous::{Segment, Offer, Connection, socket};
//! use std::sync::Arc;
//!
//! let (ours, theirs) = socket::pair()?;
//! let joiner = std::thread::spawn(move || -> Result<(), doorbell::rendezvous::RendezvousError> {
//!     let connection: Connection = socket::join_over(theirs)?;
//!     connection.bell::<doorbell::wait::Adaptive>(0).unwrap().ring();
//!     Ok(())
//! });
//! let segment = Arc::new(Segment::new(&Offer::default())?);
//! let mut bell: doorbell::Bell = segment.bell(0).unwrap();
//! let connection: Connection = socket::host_over(ours, &segment)?;
//! bell.wait().unwrap();
//! joiner.join().unwrap()?;
//! # Ok::<(), doorbell::rendezvous::RendezvousError>(())
//! ```

use super::path_lock::PathLock;
use super::{Connection, MOST_EVENTFDS, RendezvousError, Segment, Side, most_memory, os};
use crate::mapping::Mapping;
use crate::peer::{Peer, PeerId, Trust};
use crate::process::Process;
use doorbell_core::layout::{KNOWN_FEATURES, MAJOR, MAKER, MINOR, MOST_HOLDERS, REQUIRED_FEATURES};
use doorbell_core::violation::PeerViolation;
use doorbell_core::wake::WAITER_SLOTS;
use rustix::cmsg_space;
use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::fs::stat;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, recvmsg, sendmsg, sockopt,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long either side waits for the other's next packet. A peer that connects and says nothing holds nobody up
/// for longer; long enough for one that is starved of processor time.
pub const PATIENCE: Duration = Duration::from_secs(30);

const HELLO: u64 = u64::from_ne_bytes(*b"DBHELLO1");
const OFFER: u64 = u64::from_ne_bytes(*b"DBOFFER1");
const VERDICT: u64 = u64::from_ne_bytes(*b"DBVERDT1");
const LOG: u64 = u64::from_ne_bytes(*b"DBLOG002");
const ACCEPTED: u64 = 0;
const REFUSED: u64 = 1;

/// A path at which processes can meet this one.
#[derive(Debug)]
pub struct Host {
    listener: OwnedFd,
    path: PathBuf,
    /// Device and inode of the socket at the path.
    file: (u64, u64),
    /// A forked child has a copy, and its parent goes on.
    process: Process,
}

impl Host {
    /// Binds `path`. Who may connect is decided by the rights of the path's directory and of the socket file.
    ///
    /// A socket file that a dead host left is replaced; one with a living host is not.
    ///
    /// # Errors
    /// [`RendezvousError::Owned`] if another process listens there; [`RendezvousError::Os`].
    pub fn bind(path: impl AsRef<Path>) -> Result<Self, RendezvousError> {
        let path = path.as_ref().to_owned();
        let address = SocketAddrUnix::new(&path).map_err(os("bind"))?;
        let listener = new_socket(SocketFlags::empty())?;
        // Until we listen: another host that found nobody listening would remove our socket as a stale one.
        let _lock = PathLock::take(&path)?;
        match rustix::net::bind(&listener, &address) {
            Err(Errno::ADDRINUSE) => {
                // Whoever has more callers than fit its queue lives: not waited for, with the lock held.
                match rustix::net::connect(&new_socket(SocketFlags::NONBLOCK)?, &address) {
                    Err(Errno::CONNREFUSED) => {}
                    _ => return Err(RendezvousError::Owned),
                }
                rustix::fs::unlink(&path).map_err(os("unlink"))?;
                rustix::net::bind(&listener, &address).map_err(os("bind"))?;
            }
            result => result.map_err(os("bind"))?,
        }
        rustix::net::listen(&listener, 16).map_err(os("listen"))?;
        let ours = stat(&path).map_err(os("stat"))?;
        Ok(Self { listener, path, file: (ours.st_dev, ours.st_ino), process: Process::current() })
    }

    /// Waits for the next process and offers it `segment`: a new one, to share with nobody else, or one that others
    /// have joined before.
    ///
    /// # Errors
    /// [`RendezvousError`]. The host can go on accepting after any.
    pub fn accept<T: Trust>(&self, segment: &Arc<Segment>) -> Result<Connection<T>, RendezvousError> {
        let accept = || rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC);
        let socket = retry_on_intr(accept).map_err(os("accept4"))?;
        host_over(socket, segment)
    }
}

impl AsFd for Host {
    /// Readable when a process wants to meet.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Somebody may have removed it, and another host may be there now. None comes in between: we still listen.
        if self.process.is_current()
            && stat(&self.path).is_ok_and(|there| (there.st_dev, there.st_ino) == self.file)
        {
            let _ = rustix::fs::unlink(&self.path);
        }
    }
}

fn new_socket(flags: SocketFlags) -> Result<OwnedFd, RendezvousError> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | flags, None)
        .map_err(os("socket"))
}

/// Two connected sockets, to meet over.
///
/// # Errors
/// [`RendezvousError::Os`].
pub fn pair() -> Result<(OwnedFd, OwnedFd), RendezvousError> {
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(os("socketpair"))
}

/// Meets the host at `path`.
///
/// # Errors
/// [`RendezvousError::NoOwner`] if nobody listens there; [`RendezvousError::NoAnswer`] if the host does not come to us within
/// [`PATIENCE`]; else [`RendezvousError`].
pub fn join<T: Trust>(path: impl AsRef<Path>) -> Result<Connection<T>, RendezvousError> {
    join_within(path, most_memory::<T>())
}

/// As [`join`], with memory of up to `most` bytes instead of the [`MOST_MEMORY`](super::MOST_MEMORY) that are taken from a
/// host who is not trusted.
///
/// # Errors
/// As [`join`].
pub fn join_within<T: Trust>(path: impl AsRef<Path>, most: u64) -> Result<Connection<T>, RendezvousError> {
    join_over_within(connect(path.as_ref(), PATIENCE)?, most)
}

/// Waits up to `patience` for room in the host's queue of callers.
fn connect(path: &Path, patience: Duration) -> Result<OwnedFd, RendezvousError> {
    let address = SocketAddrUnix::new(path).map_err(os("connect"))?;
    let socket = new_socket(SocketFlags::empty())?;
    // The time-out of sending is that of connecting too (unix_stream_connect).
    set_patience(&socket, patience)?;
    retry_on_intr(|| rustix::net::connect(&socket, &address)).map_err(|errno| match errno {
        Errno::NOENT | Errno::CONNREFUSED => RendezvousError::NoOwner,
        Errno::AGAIN => RendezvousError::NoAnswer(errno),
        errno => RendezvousError::Os { call: "connect", errno },
    })?;
    Ok(socket)
}

/// The host's part over a connected `SOCK_SEQPACKET` socket.
///
/// # Errors
/// [`RendezvousError`].
pub fn host_over<T: Trust>(
    socket: OwnedFd,
    segment: &Arc<Segment>,
) -> Result<Connection<T>, RendezvousError> {
    host_whom(socket, segment, None)
}

/// As [`host_over`], with a child whose number the parent knows and the socket does not.
pub(super) fn host_whom<T: Trust>(
    socket: OwnedFd,
    segment: &Arc<Segment>,
    child: Option<u32>,
) -> Result<Connection<T>, RendezvousError> {
    set_patience(&socket, PATIENCE)?;
    let [hello, version, features] = receive(&socket, &mut Vec::new())?;
    expect("hello", hello, HELLO)?;
    let plan = segment.mapping().plan();
    let acceptable = version >> 32 == u64::from(MAJOR) && plan.features & REQUIRED_FEATURES & !features == 0;
    let holder = segment.mapping().next_holder();
    let offer = [OFFER, our_version(), plan.bells.into(), segment.eventfds_per_bell.into(), holder.into()];
    if !acceptable {
        // A joiner of another version finds that out from the offer and needs no descriptors to do so.
        send(&socket, &offer, &[])?;
        receive_verdict(&socket)?;
        return Err(RendezvousError::Refused);
    }
    let (peer, under) = match peer_at(&socket, child).and_then(|peer| Ok((peer, segment.admit::<T>()?))) {
        Ok(admitted) => admitted,
        Err(error) => {
            // It is told so by an offer of nothing; the reason that is told here is the one that came first.
            let _ = send(&socket, &offer, &[]);
            return Err(error);
        }
    };
    let mut descriptors = Vec::new();
    descriptors.extend(segment.mapping().file());
    descriptors.extend(segment.states.iter().flat_map(|state| state.eventfds()).map(AsFd::as_fd));
    send(&socket, &offer, &descriptors)?;
    if receive_verdict(&socket)? == REFUSED {
        return Err(RendezvousError::Refused);
    }
    Connection::new(segment, under, peer, socket, holder, Side::Host)
}

/// [`ACCEPTED`] or [`REFUSED`].
fn receive_verdict(socket: &OwnedFd) -> Result<u64, RendezvousError> {
    let [magic, verdict] = receive(socket, &mut Vec::new())?;
    expect("verdict", magic, VERDICT)?;
    match verdict {
        ACCEPTED | REFUSED => Ok(verdict),
        value => Err(RendezvousError::Violation(PeerViolation::BadValue { field: "verdict", value })),
    }
}

/// The joiner's part over a connected `SOCK_SEQPACKET` socket.
///
/// # Errors
/// [`RendezvousError`].
pub fn join_over<T: Trust>(socket: OwnedFd) -> Result<Connection<T>, RendezvousError> {
    join_over_within(socket, most_memory::<T>())
}

/// As [`join_over`], with memory of up to `most` bytes; see [`join_within`].
///
/// # Errors
/// [`RendezvousError`].
pub fn join_over_within<T: Trust>(socket: OwnedFd, most: u64) -> Result<Connection<T>, RendezvousError> {
    set_patience(&socket, PATIENCE)?;
    send(&socket, &[HELLO, our_version(), KNOWN_FEATURES & our_c_library()], &[])?;
    let mut descriptors = Vec::new();
    let offer = receive(&socket, &mut descriptors)?;
    let taken = take_offer(offer, descriptors, most, T::TRUSTED);
    match taken.and_then(|segment| Ok((peer_at(&socket, None)?, segment.admit::<T>()?, segment))) {
        Ok((peer, under, segment)) => {
            send(&socket, &[VERDICT, ACCEPTED], &[])?;
            Connection::new(&Arc::new(segment), under, peer, socket, MAKER, Side::Joiner)
        }
        Err(error) => {
            // The reason that is told is the one that came first.
            let _ = send(&socket, &[VERDICT, REFUSED], &[]);
            Err(error)
        }
    }
}

/// All features but the other C library's.
fn our_c_library() -> u64 {
    !doorbell_core::layout::FEATURE_GLIBC_SEMAPHORE | super::c_library_feature()
}

fn our_version() -> u64 {
    u64::from(MAJOR) << 32 | u64::from(MINOR)
}

fn take_offer(
    offer: [u64; 5],
    descriptors: Vec<OwnedFd>,
    most: u64,
    trusted: bool,
) -> Result<Segment, RendezvousError> {
    let [magic, version, bells, eventfds, holder] = offer;
    expect("offer", magic, OFFER)?;
    if version >> 32 != u64::from(MAJOR) {
        let theirs = u32::try_from(version >> 32).unwrap_or(u32::MAX);
        let error = doorbell_core::layout::LayoutError::Version { theirs, ours: MAJOR };
        return Err(RendezvousError::Map(error.into()));
    }
    if eventfds > u64::from(WAITER_SLOTS) {
        return Err(RendezvousError::Violation(PeerViolation::BadValue {
            field: "eventfds",
            value: eventfds,
        }));
    }
    let got = descriptors.len() as u64;
    let announced = bells.saturating_mul(eventfds).saturating_add(1);
    if got != announced {
        // A host that has something we do not know sends none.
        let violation = PeerViolation::Descriptors { got, announced };
        return Err(if got == 0 { RendezvousError::Refused } else { RendezvousError::Violation(violation) });
    }
    let bad_holder =
        || RendezvousError::Violation(PeerViolation::BadValue { field: "holder", value: holder });
    let holder = u32::try_from(holder)
        .ok()
        .filter(|holder| (1..MOST_HOLDERS).contains(holder))
        .ok_or_else(bad_holder)?;
    let mut descriptors = descriptors.into_iter();
    let memory = descriptors.next().ok_or(RendezvousError::Refused)?;
    let mapping = Mapping::from_peer(memory, most, trusted)?;
    let planned = u64::from(mapping.plan().bells);
    if planned != bells {
        return Err(RendezvousError::Violation(PeerViolation::BadValue { field: "bells", value: bells }));
    }
    let mut of_bells = Vec::new();
    for _ in 0..bells {
        let of_bell: Box<[OwnedFd]> =
            descriptors.by_ref().take(usize::try_from(eventfds).unwrap_or(0)).collect();
        for eventfd in &of_bell {
            check_eventfd(eventfd.as_fd())?;
        }
        of_bells.push(of_bell);
    }
    Ok(Segment::assemble(mapping, of_bells, holder)?)
}

/// A pipe or a terminal in place of an eventfd could block a ring for ever, or print it.
fn check_eventfd(file: BorrowedFd<'_>) -> Result<(), RendezvousError> {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let link = link.map_err(|error| RendezvousError::Os {
        call: "readlink(/proc/self/fd)",
        errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
    })?;
    if link.as_os_str() == "anon_inode:[eventfd]" {
        return Ok(());
    }
    let value = file.as_raw_fd().unsigned_abs().into();
    Err(RendezvousError::Violation(PeerViolation::BadValue { field: "eventfd", value }))
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

    /// Receives what `send_log` sent: lane, cursor, number, log. Waits for it as long as for the packets of a rendezvous.
    pub(crate) fn receive_log(&self) -> Result<(u64, u64, u64, OwnedFd), RendezvousError> {
        let mut descriptors = Vec::new();
        let [magic, lane, cursor, published] = receive(self.hold.file(), &mut descriptors)?;
        expect("log", magic, LOG)?;
        let got = descriptors.len() as u64;
        let violation = RendezvousError::Violation(PeerViolation::Descriptors { got, announced: 1 });
        let log = descriptors.pop().filter(|_| got == 1).ok_or(violation)?;
        Ok((lane, cursor, published, log))
    }
}

fn expect(field: &'static str, value: u64, wanted: u64) -> Result<(), RendezvousError> {
    if value == wanted {
        return Ok(());
    }
    Err(RendezvousError::Violation(PeerViolation::BadValue { field, value }))
}

fn set_patience(socket: &OwnedFd, patience: Duration) -> Result<(), RendezvousError> {
    for direction in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
        sockopt::set_socket_timeout(socket, direction, Some(patience)).map_err(os("SO_RCVTIMEO"))?;
    }
    Ok(())
}

fn send(socket: impl AsFd, words: &[u64], descriptors: &[BorrowedFd<'_>]) -> Result<(), RendezvousError> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_EVENTFDS as usize + 1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)
        .map_err(no_answer("sendmsg"))?;
    Ok(())
}

/// Receives one packet of exactly `N` words, and whatever descriptors come with it.
fn receive<const N: usize>(
    socket: impl AsFd,
    descriptors: &mut Vec<OwnedFd>,
) -> Result<[u64; N], RendezvousError> {
    let mut bytes = [0; 64];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_EVENTFDS as usize + 1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    // A socket with a time-out is not restarted after a signal (signal(7)), whatever the handler asked for.
    let message = retry_on_intr(|| {
        recvmsg(socket.as_fd(), &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })
    .map_err(no_answer("recvmsg"))?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            descriptors.extend(files);
        }
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
    Ok(std::array::from_fn(|index| words.get(index).map_or(0, |word| u64::from_ne_bytes(*word))))
}

fn no_answer(call: &'static str) -> impl Fn(Errno) -> RendezvousError {
    move |errno| match errno {
        Errno::AGAIN | Errno::CONNRESET | Errno::PIPE => RendezvousError::NoAnswer(errno),
        errno => RendezvousError::Os { call, errno },
    }
}

/// What the kernel says about the other end.
fn peer_at(socket: &OwnedFd, child: Option<u32>) -> Result<Peer, RendezvousError> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let credentials = peer_credentials(socket).map_err(os("SO_PEERCRED"))?;
    let pid = child.unwrap_or_else(|| u32::try_from(credentials.pid).unwrap_or(0));
    let id = PeerId { number: NEXT.fetch_add(1, Ordering::Relaxed), pid };
    let pidfd = match child {
        // The socket pair was made by this process, and that is what the socket would answer. The child is not
        // reaped yet: the caller holds it.
        Some(pid) => i32::try_from(pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
            .and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()),
        None => peer_pidfd(socket),
    };
    Ok(Peer { id, uid: credentials.uid, gid: credentials.gid, pidfd })
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

/// `SO_PEERCRED`. Its process number is 0 where the other end has none in our PID namespace, which rustix's type excludes.
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
    if result == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::{Host, RendezvousError, connect, new_socket};
    use rustix::io::Errno;
    use rustix::net::{SocketAddrUnix, SocketFlags};
    use std::time::Duration;

    /// `connect` slept for as long as the host did not accept; and in `bind` with the path's lock held.
    #[test]
    fn a_host_with_a_full_queue_holds_nobody_up_for_ever() {
        let path = std::env::temp_dir().join(format!("doorbell-queue-{}", std::process::id()));
        let _host = Host::bind(&path).unwrap();
        let address = SocketAddrUnix::new(&path).unwrap();
        let mut callers = Vec::new();
        let full = loop {
            let caller = new_socket(SocketFlags::NONBLOCK).unwrap();
            match rustix::net::connect(&caller, &address) {
                Ok(()) => callers.push(caller),
                Err(errno) => break errno,
            }
        };
        assert_eq!(full, Errno::AGAIN);
        let (told, tells) = std::sync::mpsc::channel();
        let there = path.clone();
        std::thread::spawn(move || {
            let joined = connect(&there, Duration::from_millis(1)).map(drop);
            told.send((joined, Host::bind(&there).map(drop))).unwrap();
        });
        let answers = tells.recv_timeout(Duration::from_secs(60)).expect("hung");
        assert_eq!(answers, (Err(RendezvousError::NoAnswer(Errno::AGAIN)), Err(RendezvousError::Owned)));
    }
}
