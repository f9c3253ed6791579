// SPDX-License-Identifier: MIT OR Apache-2.0
//! The joiner's part of a rendezvous over a socket.

use super::host::Door;
#[cfg(feature = "tokio")]
use super::packet::try_receive;
use super::packet::{
    ACCEPTED, HELLO, OFFER, VERDICT, expect, is_own, our_version, peer_at, receive, receive_more, refuse,
    send,
};
use super::patience::{HOST_PATIENCE, JOIN_PATIENCE, Patience};
use super::{
    Connection, MOST_EVENTFDS, Reason, RendezvousError, Segment, Side, Users, address, most_memory,
    new_socket, os,
};
use crate::errno::errno;
use crate::holder::Holder;
use crate::mapping::Mapping;
use crate::peer::{Peer, Trust, Untrusted};
use doorbell_core::layout::{KNOWN_FEATURES, LayoutError, MAJOR, MAKER, MOST_HOLDERS};
use doorbell_core::violation::PeerViolation;
use doorbell_core::wake::WAITER_SLOTS;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{SocketFlags, sockopt};
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a process joins a host: how long it waits for it, how much
/// memory it takes from it, and from whom.
///
/// ```no_run
/// use doorbell::rendezvous::{Join, Users};
///
/// // The host may be another user's; it is not trusted, as always.
/// let connection = Join::default().host(Users::Listed([1000].into())).at("/run/quotes")?;
/// # Ok::<(), doorbell::rendezvous::RendezvousError>(())
/// ```
#[derive(Debug)]
pub struct Join<T: Trust = Untrusted> {
    most_memory: u64,
    most_eventfds: u32,
    patience: Duration,
    host: Users,
    trust: PhantomData<T>,
}

impl<T: Trust> Clone for Join<T> {
    fn clone(&self) -> Self {
        Self { host: self.host.clone(), trust: PhantomData, ..*self }
    }
}

impl Default for Join {
    /// Takes up to [`MOST_MEMORY`](super::MOST_MEMORY) from a host of this process's user or
    /// root's, for whom it waits [`JOIN_PATIENCE`].
    fn default() -> Self {
        // SAFETY: nobody is trusted.
        unsafe { Self::of() }
    }
}

impl<T: Trust> Join<T> {
    /// Joins a host that is trusted if `T` says so: takes any amount
    /// of memory, and lends it out as it lies there.
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
    /// If `T` is [`Trusted`](crate::peer::Trusted): the host, and whoever else it shares the memory
    /// with, follows the protocol for as long as the connection or anything taken over it
    /// lives. One that does not makes a `&[u8]` of this process change.
    pub unsafe fn of() -> Self {
        Self {
            most_memory: most_memory::<T>(),
            most_eventfds: most_eventfds::<T>(),
            patience: JOIN_PATIENCE,
            host: Users::Same,
            trust: PhantomData,
        }
    }

    /// Takes up to `most` bytes of memory: what the host offers costs
    /// the host nothing, and whoever reads it pays for it.
    #[must_use]
    pub fn most_memory(self, most: u64) -> Self {
        Self { most_memory: most, ..self }
    }

    /// Takes up to `most` eventfds: a host of another user could use up those that this process may
    /// have. (The kernel hands over up to 252 before anybody can look at them.)
    #[must_use]
    pub fn most_eventfds(self, most: u32) -> Self {
        Self { most_eventfds: most, ..self }
    }

    /// Waits up to `patience`, in all: for room in the host's queue, and for its offer.
    /// [`at`](Self::at) comes again, as long as that is not over, if the host gave its place to
    /// others or hung up because it was late: something may have held this process up. An
    /// [`Interrupt`](crate::wait::Interrupt) ends the wait.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Joins a host of these users only. Asked for [`at`](Self::at) alone: of a socket pair the
    /// kernel tells who made it.
    #[must_use]
    pub fn host(self, users: Users) -> Self {
        Self { host: users, ..self }
    }

    /// Joins the host at `path`.
    ///
    /// # Errors
    /// [`RendezvousError::NoOwner`] if nobody listens there; [`RendezvousError::OtherUser`] if
    /// somebody else's process does; [`RendezvousError::TimedOut`] if it does not come to us in
    /// time; [`RendezvousError::Refused`] if it does not let us in; else [`RendezvousError`].
    pub fn at(&self, path: impl AsRef<Path>) -> Result<Connection<T>, RendezvousError> {
        self.within(path.as_ref(), &Patience::of(self.patience))
    }

    fn within(&self, path: &Path, patience: &Patience<'_>) -> Result<Connection<T>, RendezvousError> {
        let mut came = Instant::now();
        loop {
            let result = self.come(path, patience);
            let again = match &result {
                Err(RendezvousError::Refused(Reason::TooSlow | Reason::Crowded)) => true,
                // It gave our place to another before it took our hello or verdict. One that was killed is
                // not there the next time.
                Err(RendezvousError::NoAnswer(Errno::PIPE)) => true,
                // One that was killed says nothing.
                Err(RendezvousError::NoAnswer(Errno::CONNRESET)) => came.elapsed() >= HOST_PATIENCE,
                _ => false,
            };
            if !again || patience.is_over() {
                return result;
            }
            pause(AGAIN_AFTER, patience)?;
            came = Instant::now();
        }
    }

    fn come(&self, path: &Path, patience: &Patience<'_>) -> Result<Connection<T>, RendezvousError> {
        let socket = connect(path, patience)?;
        let own = is_own(&socket);
        let greeted = self.greet(socket)?;
        if !own {
            return self.after(greeted, patience);
        }
        // This may be the very thread that serves; or the service
        // listens already, and is known as one a moment later.
        let make_offers = || {
            if let Some(door) = Door::of_this_process(path) {
                door.make_offers();
            }
        };
        self.after(greeted, &patience.with(&make_offers))
    }

    /// Says hello to who is at the other end of `socket`, if it is one whom this joins.
    pub(crate) fn greet(&self, socket: OwnedFd) -> Result<Greeted, RendezvousError> {
        self.host.check(&peer_at(&socket, None)?)?;
        Ok(Greeted::over(socket))
    }

    /// Joins whoever hosts over a connected `SOCK_SEQPACKET` socket.
    ///
    /// # Errors
    /// [`RendezvousError`].
    pub fn over(&self, socket: OwnedFd) -> Result<Connection<T>, RendezvousError> {
        self.after(Greeted::over(socket), &Patience::of(self.patience))
    }

    fn after(&self, mut greeted: Greeted, patience: &Patience<'_>) -> Result<Connection<T>, RendezvousError> {
        let offer =
            match (greeted.refused.take(), receive(&greeted.socket, &mut greeted.descriptors, patience)) {
                // Whoever refused before it was greeted may have said why.
                (Some(error), Err(_)) => return Err(error),
                (_, offer) => offer?,
            };
        self.take(greeted, offer, patience)
    }

    /// As `take`, for one who waited for the offer otherwise.
    #[cfg(feature = "tokio")]
    pub(crate) fn take_at_once(
        &self,
        greeted: Greeted,
        offer: Offered,
    ) -> Result<Connection<T>, RendezvousError> {
        self.take(greeted, offer, &Patience::of(JOIN_PATIENCE))
    }

    /// Takes what was offered.
    fn take(
        &self,
        greeted: Greeted,
        offer: Offered,
        patience: &Patience<'_>,
    ) -> Result<Connection<T>, RendezvousError> {
        let Greeted { socket, descriptors, .. } = greeted;
        let taken = self.segment(&socket, offer, descriptors, patience);
        match taken.and_then(|segment| Ok((peer_at(&socket, None)?, segment.admit::<T>()?, segment))) {
            Ok((peer, under, segment)) => {
                send(&socket, &[VERDICT, ACCEPTED], &[])?;
                Connection::new(&Arc::new(segment), under, peer, socket, MAKER, Side::Joiner)
            }
            Err(error) => {
                refuse(&socket, VERDICT, &error);
                Err(error)
            }
        }
    }
}

impl<T: Trust> Join<T> {
    /// Is it a process of those whom this joins?
    pub(super) fn check(&self, host: &Peer) -> Result<(), RendezvousError> {
        self.host.check(host)
    }

    /// What is offered, with the descriptors that came with the
    /// offer, and those that come after it.
    pub(super) fn segment(
        &self,
        socket: &OwnedFd,
        offer: Offered,
        mut descriptors: Vec<OwnedFd>,
        patience: &Patience<'_>,
    ) -> Result<Segment, RendezvousError> {
        all_descriptors(socket, offer, &mut descriptors, self.most_eventfds, patience)?;
        take_offer(offer, descriptors, self.most_memory, T::TRUSTED)
    }
}

/// The words of an offer.
pub(crate) type Offered = [u64; 5];

/// A host that was said hello to.
pub(crate) struct Greeted {
    socket: OwnedFd,
    /// It did not take the greeting, and may have said why.
    refused: Option<RendezvousError>,
    descriptors: Vec<OwnedFd>,
}

impl Greeted {
    fn over(socket: OwnedFd) -> Self {
        let greeted = send(&socket, &[HELLO, our_version(), KNOWN_FEATURES], &[]);
        Self { socket, refused: greeted.err(), descriptors: Vec::new() }
    }

    /// Its offer, if it has come.
    #[cfg(feature = "tokio")]
    pub(crate) fn try_offer(&mut self) -> Result<Option<Offered>, RendezvousError> {
        try_receive(&self.socket, &mut self.descriptors)
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// How long somebody waits before it comes again.
const AGAIN_AFTER: Duration = Duration::from_millis(5);

/// Waits a while, unless there is no time left.
fn pause(pause: Duration, patience: &Patience<'_>) -> Result<(), RendezvousError> {
    if patience.is_over() {
        return Err(patience.timed_out());
    }
    patience.sleep(&mut [], pause)
}

/// Joins a host that is at one of `paths`, the first of them first,
/// and waits up to `whole` for it, in all.
pub(crate) fn join_one_of<T: Trust>(
    join: &Join<T>,
    paths: impl Fn() -> Result<Vec<PathBuf>, RendezvousError>,
    whole: Option<Duration>,
) -> Result<Connection<T>, RendezvousError> {
    let patience = Patience::of(whole.unwrap_or(join.patience));
    loop {
        let paths = paths()?;
        for path in &paths {
            match join.within(path, &patience) {
                Err(RendezvousError::NoOwner { .. }) => {}
                result => return result,
            }
        }
        // A service that comes tells nobody: a folder can be watched, a path in several not.
        if whole.is_none() || patience.is_over() {
            return Err(no_owner(paths));
        }
        pause(AGAIN_AFTER, &patience)?;
    }
}

/// Nobody listens at any of `paths`.
pub(crate) fn no_owner(paths: Vec<PathBuf>) -> RendezvousError {
    RendezvousError::NoOwner { path: paths.into_iter().next().unwrap_or_default() }
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

/// Waits for room in the host's queue of callers.
pub(super) fn connect(path: &Path, patience: &Patience<'_>) -> Result<OwnedFd, RendezvousError> {
    let address = address(path)?;
    loop {
        let socket = new_socket(SocketFlags::empty())?;
        // The time-out of sending is that of connecting too (unix_stream_connect).
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(patience.stretch()))
            .map_err(os("SO_SNDTIMEO"))?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => return Ok(socket),
            // Its time-out.
            Err(Errno::AGAIN) if patience.is_over() => return Err(patience.timed_out()),
            again @ Err(Errno::INTR | Errno::AGAIN) => patience.go_on(again)?,
            Err(Errno::NOENT | Errno::CONNREFUSED) => return Err(no_owner(vec![path.to_owned()])),
            Err(errno) => return Err(os("connect")(errno)),
        }
    }
}

/// As `connect`, with the patience of `join`.
#[cfg(feature = "tokio")]
pub(crate) fn connect_by<T: Trust>(join: &Join<T>, path: &Path) -> Result<OwnedFd, RendezvousError> {
    connect(path, &Patience::of(join.patience))
}

/// As `connect`, but does not wait. `None` if there is no room.
#[cfg(feature = "tokio")]
pub(crate) fn try_connect(path: &Path) -> Result<Option<OwnedFd>, RendezvousError> {
    let socket = new_socket(SocketFlags::NONBLOCK)?;
    match rustix::net::connect(&socket, &address(path)?) {
        Ok(()) => {
            // What is sent from now on is waited for.
            rustix::io::ioctl_fionbio(&socket, false).map_err(os("FIONBIO"))?;
            Ok(Some(socket))
        }
        Err(Errno::AGAIN) => Ok(None),
        Err(Errno::NOENT | Errno::CONNREFUSED) => Err(no_owner(vec![path.to_owned()])),
        Err(errno) => Err(os("connect")(errno)),
    }
}

/// What is taken without a word about it.
fn most_eventfds<T: Trust>() -> u32 {
    if T::TRUSTED { u32::MAX } else { MOST_EVENTFDS }
}

/// How many descriptors come with an offer: the memory, and all bells' eventfds.
fn announced([_, _, bells, eventfds, _]: [u64; 5]) -> u64 {
    bells.saturating_mul(eventfds).saturating_add(1)
}

/// Receives those of the offer's descriptors that did not fit its
/// packet, if they are not more than are taken.
fn all_descriptors(
    socket: &OwnedFd,
    offer: [u64; 5],
    descriptors: &mut Vec<OwnedFd>,
    most: u32,
    patience: &Patience<'_>,
) -> Result<(), RendezvousError> {
    let [magic, _, bells, eventfds, _] = offer;
    expect("offer", magic, OFFER)?;
    let announced = announced(offer);
    // A host that has something we do not know sends none.
    if descriptors.is_empty() || announced.saturating_sub(1) <= u64::from(most) {
        return receive_more(socket, descriptors, announced, patience);
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
    if let Some(reason) = Reason::of_word(holder).filter(|_| descriptors.is_empty())
        && reason != Reason::Unusable
    {
        return Err(RendezvousError::Refused(reason));
    }
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
        // Whoever refuses sends none.
        let violation = PeerViolation::Descriptors { got, announced };
        let refused = RendezvousError::Refused(Reason::of_word(holder).unwrap_or(Reason::Unsaid));
        return Err(if got == 0 { refused } else { RendezvousError::Violation(violation) });
    }
    let bad_holder =
        || RendezvousError::Violation(PeerViolation::BadValue { field: "holder", value: holder });
    let holder = u32::try_from(holder)
        .ok()
        .filter(|holder| (1..MOST_HOLDERS).contains(holder))
        .ok_or_else(bad_holder)?;
    let mut descriptors = descriptors.into_iter();
    let memory = descriptors.next().ok_or(RendezvousError::Refused(Reason::Unsaid))?;
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
    let link = link.map_err(|error| os("readlink(/proc/self/fd)")(errno(&error)))?;
    if link.as_os_str() == "anon_inode:[eventfd]" {
        return Ok(());
    }
    let value = file.as_raw_fd().unsigned_abs().into();
    Err(RendezvousError::Violation(PeerViolation::BadValue { field: "eventfd", value }))
}
