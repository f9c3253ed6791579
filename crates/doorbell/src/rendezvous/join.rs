// SPDX-License-Identifier: MIT OR Apache-2.0
//! The joiner's part of a rendezvous over a socket.

use super::packet::{
    ACCEPTED, HELLO, OFFER, REFUSED, VERDICT, expect, our_version, peer_at, receive, receive_more, send,
    set_patience,
};
use super::socket::HOST_PATIENCE;
use super::{
    Connection, MOST_EVENTFDS, RendezvousError, Segment, Side, Users, c_library_feature, most_memory,
    new_socket, os,
};
use crate::holder::Holder;
use crate::mapping::Mapping;
use crate::peer::{Trust, Untrusted};
use doorbell_core::layout::{
    FEATURE_GLIBC_SEMAPHORE, KNOWN_FEATURES, LayoutError, MAJOR, MAKER, MOST_HOLDERS,
};
use doorbell_core::violation::PeerViolation;
use doorbell_core::wake::WAITER_SLOTS;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{SocketAddrUnix, SocketFlags};
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a process joins a host: how long it waits for it, how much memory it takes from it, and from whom.
///
/// ```no_run
/// use doorbell::rendezvous::{Join, Users};
///
/// // The host may be another user's; it is not trusted, as always.
/// let connection = Join::default().host(Users::Listed([1000].into())).at("/run/quotes")?;
/// # Ok::<(), doorbell::rendezvous::RendezvousError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Join<T: Trust = Untrusted> {
    most_memory: u64,
    most_eventfds: u32,
    patience: Duration,
    host: Users,
    trust: PhantomData<T>,
}

/// How long a joiner waits for room in the host's queue, and for its offer, if it does not say otherwise. Many times
/// [`HOST_PATIENCE`](super::socket::HOST_PATIENCE): a host that is busy turning away silent callers gets to an honest one.
pub const JOIN_PATIENCE: Duration = Duration::from_secs(30);

impl Default for Join {
    /// Takes up to [`MOST_MEMORY`](super::MOST_MEMORY) from a host of this process's user or root's, for whom it waits [`JOIN_PATIENCE`].
    fn default() -> Self {
        // SAFETY: nobody is trusted.
        unsafe { Self::of() }
    }
}

impl<T: Trust> Join<T> {
    /// Joins a host that is trusted if `T` says so: takes any amount of memory, and lends it out as it lies there.
    ///
    /// To trust is a promise, which safe code cannot make:
    ///
    /// ```compile_fail,E0133
    /// use doorbell::{peer::Trusted, raw::Join};
    ///
    /// let join: Join<Trusted> = Join::of();
    /// ```
    ///
    /// # Safety
    /// If `T` is [`Trusted`](crate::peer::Trusted): the host, and whoever else it shares the memory with, follows the protocol
    /// for as long as the connection or anything taken over it lives. One that does not makes a `&[u8]` of this process change.
    pub unsafe fn of() -> Self {
        Self {
            most_memory: most_memory::<T>(),
            most_eventfds: most_eventfds::<T>(),
            patience: JOIN_PATIENCE,
            host: Users::Same,
            trust: PhantomData,
        }
    }

    /// Takes up to `most` bytes of memory: what the host offers costs the host nothing, and whoever reads it pays for it.
    #[must_use]
    pub fn most_memory(self, most: u64) -> Self {
        Self { most_memory: most, ..self }
    }

    /// Takes up to `most` eventfds: a host of another user could use up those that this process may have. (The kernel hands over
    /// up to 252 before anybody can look at them.)
    #[must_use]
    pub fn most_eventfds(self, most: u32) -> Self {
        Self { most_eventfds: most, ..self }
    }

    /// Waits up to `patience` for room in the host's queue, and as long again for its offer. [`at`](Self::at) comes once more, with as
    /// much patience, if the host hung up on it when [`HOST_PATIENCE`] had passed: something may have held it up.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Joins a host of these users only. Asked for [`at`](Self::at) alone: of a socket pair the kernel tells who made it.
    #[must_use]
    pub fn host(self, users: Users) -> Self {
        Self { host: users, ..self }
    }

    /// Joins the host at `path`.
    ///
    /// # Errors
    /// [`RendezvousError::NoOwner`] if nobody listens there; [`RendezvousError::OtherUser`] if somebody else's process does;
    /// [`RendezvousError::NoAnswer`] if it does not come to us in time, or hangs up as on one whom it does not admit; else
    /// [`RendezvousError`].
    pub fn at(&self, path: impl AsRef<Path>) -> Result<Connection<T>, RendezvousError> {
        let path = path.as_ref();
        let came = Instant::now();
        match self.come(path) {
            // Whom a busy machine held up for longer than hosts wait was hung up on for that alone. Once, for another reason looks
            // the same.
            Err(RendezvousError::NoAnswer(Errno::CONNRESET | Errno::PIPE))
                if came.elapsed() >= HOST_PATIENCE =>
            {
                self.come(path)
            }
            result => result,
        }
    }

    fn come(&self, path: &Path) -> Result<Connection<T>, RendezvousError> {
        let socket = connect(path, self.patience)?;
        self.host.check(&peer_at(&socket, None)?)?;
        self.over(socket)
    }

    /// Joins whoever hosts over a connected `SOCK_SEQPACKET` socket.
    ///
    /// # Errors
    /// [`RendezvousError`].
    pub fn over(&self, socket: OwnedFd) -> Result<Connection<T>, RendezvousError> {
        set_patience(&socket, self.patience)?;
        send(&socket, &[HELLO, our_version(), KNOWN_FEATURES & our_c_library()], &[])?;
        let mut descriptors = Vec::new();
        let offer = receive(&socket, &mut descriptors)?;
        let taken = all_descriptors(&socket, offer, &mut descriptors, self.most_eventfds)
            .and_then(|()| take_offer(offer, descriptors, self.most_memory, T::TRUSTED));
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
}

/// Joins the host at `path`, which need not be trusted: [`Join::at`] with nothing said.
///
/// # Errors
/// As [`Join::at`].
pub fn join(path: impl AsRef<Path>) -> Result<Connection, RendezvousError> {
    Join::default().at(path)
}

/// Joins whoever hosts over a connected `SOCK_SEQPACKET` socket, who need not be trusted.
///
/// # Errors
/// As [`Join::over`].
pub fn join_over(socket: OwnedFd) -> Result<Connection, RendezvousError> {
    Join::default().over(socket)
}

/// Waits up to `patience` for room in the host's queue of callers.
pub(super) fn connect(path: &Path, patience: Duration) -> Result<OwnedFd, RendezvousError> {
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

/// All features but the other C library's.
fn our_c_library() -> u64 {
    !FEATURE_GLIBC_SEMAPHORE | c_library_feature()
}

/// What is taken without a word about it.
fn most_eventfds<T: Trust>() -> u32 {
    if T::TRUSTED { u32::MAX } else { MOST_EVENTFDS }
}

/// How many descriptors come with an offer: the memory, and all bells' eventfds.
fn announced([_, _, bells, eventfds, _]: [u64; 5]) -> u64 {
    bells.saturating_mul(eventfds).saturating_add(1)
}

/// Receives those of the offer's descriptors that did not fit its packet, if they are not more than are taken.
fn all_descriptors(
    socket: &OwnedFd,
    offer: [u64; 5],
    descriptors: &mut Vec<OwnedFd>,
    most: u32,
) -> Result<(), RendezvousError> {
    let [magic, _, bells, eventfds, _] = offer;
    expect("offer", magic, OFFER)?;
    let announced = announced(offer);
    // A host that has something we do not know sends none.
    if descriptors.is_empty() || announced.saturating_sub(1) <= u64::from(most) {
        return receive_more(socket, descriptors, announced);
    }
    let all = |number| u32::try_from(number).unwrap_or(u32::MAX);
    Err(RendezvousError::TooMany { bells: all(bells), eventfds: all(eventfds), most })
}

fn take_offer(
    offer: [u64; 5],
    descriptors: Vec<OwnedFd>,
    most: u64,
    trusted: bool,
) -> Result<Segment, RendezvousError> {
    let [_, version, bells, eventfds, holder] = offer;
    if version >> 32 != u64::from(MAJOR) {
        let theirs = u32::try_from(version >> 32).unwrap_or(u32::MAX);
        let error = LayoutError::Version { theirs, ours: MAJOR };
        return Err(RendezvousError::Map(error.into()));
    }
    if eventfds > u64::from(WAITER_SLOTS) {
        return Err(RendezvousError::Violation(PeerViolation::BadValue {
            field: "eventfds",
            value: eventfds,
        }));
    }
    let got = descriptors.len() as u64;
    let announced = announced(offer);
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
        let of_bell: Vec<OwnedFd> =
            descriptors.by_ref().take(usize::try_from(eventfds).unwrap_or(0)).collect();
        for eventfd in &of_bell {
            check_eventfd(eventfd.as_fd())?;
        }
        of_bells.push(of_bell.into_iter().collect());
    }
    Ok(Segment::assemble(mapping, of_bells, Holder::Given(holder))?)
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
