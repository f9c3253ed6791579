// SPDX-License-Identifier: MIT OR Apache-2.0
//! How processes come to share a segment of bells, and how each learns that another has gone.
//!
//! | way | for | what it leaves behind | death is told by |
//! |---|---|---|---|
//! | [`socket`] | processes that know a path, or hold a connected socket | the socket's own path, if bound to one | the socket's hang-up |
//! | [`inherited`] | a parent and the child it starts | nothing | the socket's hang-up |
//!
//! Both hand over a sealed memfd and eventfds; they work across users, containers and PID
//! namespaces, and the kernel removes everything with the last process.
//!
//! Each process runs one more thread from its first rendezvous on, which sleeps until a peer goes.
//!
//! # Descriptors
//!
//! | what | takes |
//! |---|---|
//! | a process, while it has an end | 1, for its [counters](crate::counters) |
//! | the same, from its first rendezvous on | 1 for the watcher, and 1 from the first peer on that is not trusted |
//! | a bell, or a channel, between threads | none; 1 for each waiter that was asked for a file, or waits by [`Eventfd`](crate::wait::Eventfd) |
//! | a segment between processes, on either side | 1 for the memory, 1 for each waiter slot of each bell ([`Offer::eventfds`]) |
//! | a connection, on either side | 1 for the socket, 1 that names the process (Linux 6.5) |
//! | a process met at a lane without a connection ([`Segment::for_children`]) | 1 that names it |
//!
//! Two lanes have four bells, so a client of a [service](crate::service) takes 6 on either side
//! (its process's name is given up once it is met): at the usual limit of 1024 a service has some
//! 160 clients, and asks for more by `setrlimit`. Who waits for nothing in an event loop offers no
//! eventfds, and takes 3 of a connection.
//!
//! **Why not one for each process and segment, made when it is wanted?** A token has one owner
//! ([`doorbell_core::wake`]): who consumes one behind which several wait takes the others' wake-up.
//! So a shared file can be consumed by nobody who does not know what the others have heard, and a
//! ring for one of n waiters wakes all n, n - 1 of them for nothing: 63 of 64 where each of
//! 64 lanes is awaited by a task of its own. To part them again takes a thread, one more hand-over
//! for each wake-up, or an epoll instance for each waiter, which is the descriptor that was to be
//! saved. And a file that is made after the meeting must have come to everybody who may ring before
//! its waiter arms: joiners of one segment know only their host, who may be stopped, and a forked
//! child has no connection of its own by which it could come. A ring that finds a waiter whose file
//! it has not would be lost. Hence between processes all are made before the memory is shared, and
//! between threads, where every ringer sees the same table, when they are wanted. (A client and its
//! service are two, and could send a file over their socket before its waiter arms. Whoever then
//! rings while it has no descriptor left loses the file, which the kernel closes on the way, and
//! with it the wake-up; and what lies in sockets unread is counted to its user, who may have no
//! more of it than of open files (unix(7)): 1024 idle clients would be refused a file each.)

mod address;
mod error;
mod hold;
mod host;
pub mod inherited;
mod join;
mod packet;
mod path_lock;
mod patience;
mod processes;
mod reason;
mod sent_end;
pub mod socket;
mod unused;
mod users;

use crate::aio::Signaller;
use crate::bell::Bell;
use crate::bell_state::BellState;
use crate::error::HungUp;
use crate::holder::{self, Holder};
use crate::mapping::{MapError, Mapping};
use crate::memory_options::{Refusal, apply};
use crate::origin::{Hold, Origin};
use crate::peer::{Lives, Peer, PeerId, Trust, Untrusted};
use crate::tokens::{Files, Tokens};
use crate::wait::Wait;
use doorbell_core::channel::layout::Lanes;
use doorbell_core::layout::{FEATURE_CHANNELS, MAKER, Plan};
use doorbell_core::peer_memory::PeerMemory;
use doorbell_core::violation::PeerViolation;
use doorbell_core::wake::WAITER_SLOTS;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::marker::PhantomData;
use std::sync::Arc;

pub use crate::directory::Ends;
pub use crate::memory_options::MemoryOptions;
pub(crate) use address::{LONGEST_PATH, address};
pub use error::RendezvousError;
use error::os;
pub(crate) use hold::{AttachContext, ConnectionHold};
pub(crate) use host::{Step, is_served};
pub use join::Join;
pub(crate) use join::join_one_of;
#[cfg(feature = "tokio")]
pub(crate) use join::{Greeted, connect_by, no_owner, try_connect};
pub(crate) use processes::Processes;
use processes::bury;
pub use reason::Reason;
pub(crate) use sent_end::{host_ahead, is_end_socket};
use socket::new_socket;
pub use unused::Unused;
pub use users::Users;

/// What the side that makes the memory puts into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// How many bells.
    pub bells: u32,
    /// How many eventfd waiter slots each bell has, at most 8. A joiner that does not trust this
    /// process takes [`MOST_EVENTFDS`] of all bells together, if it does not say
    /// [more](Join::most_eventfds).
    pub eventfds: u32,
    /// What those are. Other processes than this one's children take eventfds alone.
    pub tokens: Tokens,
    /// How many bytes beside the bells.
    pub payload: u64,
    /// Feature bits of what lies in the payload (`doorbell_core::layout`).
    pub features: u64,
    /// The lanes of the channels in the payload; see [`Offer::of_lanes`].
    pub lanes: Option<Lanes>,
    /// Are deaths told at the lanes of memory that processes share without
    /// connections ([`Segment::for_children`], [`Segment::to_be_adopted`])?
    /// Then each process has one more thread, which sleeps, from the first
    /// other on that it meets at a lane. They are, if nothing else is said.
    pub tells_deaths: bool,
    /// Wishes about the memory.
    pub memory: MemoryOptions,
}

impl Offer {
    /// Lanes for [channels](mod@crate::channel), with the bells and the memory they need, and one
    /// eventfd waiter slot for each bell.
    pub fn of_lanes(lanes: Lanes) -> Self {
        Self {
            bells: lanes.bells(),
            eventfds: 1,
            tokens: Tokens::Eventfds,
            payload: lanes.payload_size(),
            features: FEATURE_CHANNELS,
            lanes: Some(lanes),
            tells_deaths: true,
            memory: MemoryOptions::default(),
        }
    }
}

impl Default for Offer {
    /// Two bells, one for each direction, with two eventfd waiter slots each.
    fn default() -> Self {
        Self {
            bells: 2,
            eventfds: 2,
            tokens: Tokens::Eventfds,
            payload: 0,
            features: 0,
            lanes: None,
            tells_deaths: true,
            memory: MemoryOptions::default(),
        }
    }
}

/// How many eventfds a joiner takes from a host that is not trusted, if it does not say otherwise
/// ([`Join::most_eventfds`]): as many as come with one packet (`SCM_MAX_FD`) beside the memory, a
/// quarter of what a process may have open by default.
pub const MOST_EVENTFDS: u32 = 252;

/// How many bytes of memory a joiner takes from a host that is not
/// trusted, if it does not say otherwise ([`Join::most_memory`]): what the
/// host offers costs the host nothing, and whoever reads it pays for it.
pub const MOST_MEMORY: u64 = 1 << 30;

/// How many descriptors each side of a service and its client takes
/// for the other (*Descriptors*, above).
pub(crate) const DESCRIPTORS: usize = 6;

/// What is taken without a word about it.
pub(crate) fn most_memory<T: Trust>() -> u64 {
    if T::TRUSTED { u64::MAX } else { MOST_MEMORY }
}

/// The bells of one mapping as this process sees them.
#[derive(Debug)]
pub struct Segment {
    mapping: Arc<Mapping>,
    states: Vec<Arc<BellState>>,
    eventfds_per_bell: u32,
    lives: Arc<Lives>,
    refused: Vec<Refusal>,
    /// Copied out of the payload's directory once, and checked.
    lanes: Option<Lanes>,
    origin: Arc<Origin>,
    /// Of memory with lanes whose users are known by their processes.
    processes: Option<Arc<Processes>>,
}

impl Segment {
    /// Makes the memory and the eventfds that `offer` asks for.
    ///
    /// # Errors
    /// [`RendezvousError::TooMany`], [`RendezvousError::Map`].
    pub fn new(offer: &Offer) -> Result<Self, RendezvousError> {
        Self::in_file("doorbell", offer)
    }

    /// As [`new`](Self::new), for processes of this program that [adopt](Self::adopt) its
    /// [`descriptors`](Self::descriptors), and for forked children. Whoever takes an end of a
    /// lane is known by its process: a death is told at the lane's other end, and frees
    /// what the dead one held. (One that ends before it takes an end is not known; nor is one in
    /// another PID or time namespace, or where there is no `/proc`; nor that one runs another
    /// program, which is the same process. One that is killed between taking an end and ringing
    /// for the first time is told to whom looks, not to whom sleeps already.)
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn to_be_adopted(offer: &Offer) -> Result<Self, RendezvousError> {
        Self::made("doorbell", offer, holder::namespace())
    }

    /// As `new`, in memory that is called `name` where others look for it.
    pub(crate) fn in_file(name: &str, offer: &Offer) -> Result<Self, RendezvousError> {
        Self::made(name, offer, None)
    }

    fn made(name: &str, offer: &Offer, namespace: Option<u32>) -> Result<Self, RendezvousError> {
        if offer.tokens != Tokens::Eventfds {
            return Err(os("user interrupts between processes that do not inherit the segment")(
                Errno::OPNOTSUPP,
            ));
        }
        let mut refused = Vec::new();
        let plan = Plan::new(offer.bells, offer.payload, offer.features).map_err(MapError::from)?;
        let mapping = match Mapping::sealed_as(name, plan, offer.memory.huge_pages) {
            Err(MapError::Os { errno, .. }) if offer.memory.huge_pages => {
                refused.push(Refusal { option: "huge_pages", errno });
                Mapping::sealed_as(name, plan, false)?
            }
            result => result?,
        };
        refused.extend(apply(&mapping, &offer.memory));
        let mut segment = Self::furnish(mapping, offer, namespace)?;
        segment.refused = refused;
        Ok(segment)
    }

    /// A segment for the threads of this process. `offer.memory` says nothing here.
    ///
    /// # Errors
    /// [`RendezvousError::TooMany`], [`RendezvousError::Map`].
    pub fn for_threads(offer: &Offer) -> Result<Self, RendezvousError> {
        let plan = Plan::new(offer.bells, offer.payload, offer.features).map_err(MapError::from)?;
        Self::furnish(Mapping::for_threads(plan)?, offer, None)
    }

    /// A segment that this process shares with the children it forks from now on. `offer.memory`
    /// says nothing here. Deaths are told as with [`to_be_adopted`](Self::to_be_adopted).
    ///
    /// # Errors
    /// [`RendezvousError::TooMany`], [`RendezvousError::Map`].
    pub fn for_children(offer: &Offer) -> Result<Self, RendezvousError> {
        let plan = Plan::new(offer.bells, offer.payload, offer.features).map_err(MapError::from)?;
        Self::furnish(Mapping::for_children(plan)?, offer, holder::namespace())
    }

    /// Puts into fresh memory what `offer` asks for. With lanes, whose users are known by their
    /// processes of `namespace` if there is one.
    fn furnish(mapping: Mapping, offer: &Offer, namespace: Option<u32>) -> Result<Self, RendezvousError> {
        let Offer { bells, eventfds, .. } = *offer;
        let namespace = namespace.filter(|_| offer.tells_deaths && offer.lanes.is_some());
        if eventfds > WAITER_SLOTS {
            return Err(RendezvousError::TooMany { bells, eventfds, most: WAITER_SLOTS * bells });
        }
        if let Some(lanes) = &offer.lanes
            && !crate::directory::write_directory(&mapping, lanes, namespace.unwrap_or(0))?
        {
            let (bells, payload) = (lanes.bells(), lanes.payload_size());
            return Err(RendezvousError::NoRoomForLanes { bells, payload });
        }
        let of_bell =
            |_| Files::new(offer.tokens, eventfds as usize, mapping.scope()).map_err(MapError::from);
        let eventfds_of_all = (0..bells).map(of_bell).collect::<Result<Vec<_>, _>>()?;
        let holder = namespace.map(Holder::process);
        let mut segment = Self::assemble(mapping, eventfds_of_all, holder.unwrap_or(Holder::Given(MAKER)))?;
        segment.eventfds_per_bell = eventfds;
        Ok(segment)
    }

    /// Puts together what another process made.
    fn assemble(mapping: Mapping, eventfds: Vec<Files>, holder: Holder) -> Result<Self, MapError> {
        // Before whoever has the segment can fork with it.
        crate::atfork_lock::register();
        let lanes = crate::directory::read_directory(&mapping)?;
        let mapping = Arc::new(mapping);
        let lives = Arc::new(Lives::default());
        let origin = Arc::new(Origin::new(holder));
        let states: Vec<_> = (0..mapping.plan().bells)
            .zip(eventfds)
            .filter_map(|(index, eventfds)| {
                let (lives, origin) = (Arc::clone(&lives), Arc::clone(&origin));
                BellState::new(Arc::clone(&mapping), index, eventfds, lives, origin).map(Arc::new)
            })
            .collect();
        let processes = lanes.zip(origin.namespace()).map(|(lanes, namespace)| {
            let (mapping, lives, origin) = (Arc::clone(&mapping), Arc::clone(&lives), Arc::clone(&origin));
            Processes::new(mapping, lanes, states.clone(), lives, origin, namespace)
        });
        Ok(Self {
            mapping,
            states,
            eventfds_per_bell: 0,
            lives,
            refused: Vec::new(),
            lanes,
            origin,
            processes,
        })
    }

    /// What [`adopt`](Self::adopt) takes in another process: the memory, and the eventfds of all
    /// bells in order. `None` for memory without a file.
    ///
    /// # Safety
    /// As [`Mapping::file`].
    pub unsafe fn descriptors(&self) -> Option<(BorrowedFd<'_>, Vec<BorrowedFd<'_>>)> {
        let all = self
            .states
            .iter()
            .flat_map(|state| (0..state.eventfd_slots()).filter_map(|index| state.eventfd(index)));
        let eventfds = all.map(AsFd::as_fd).collect();
        Some((self.mapping.descriptor()?, eventfds))
    }

    /// A segment that a process of the same program made, by its
    /// [`descriptors`](Self::descriptors), however they came here. No connection tells of
    /// anybody's death; the kernel does, if it was made [to be adopted](Self::to_be_adopted).
    ///
    /// # Safety
    /// All who have the descriptors follow the protocol for as long as the segment lives.
    ///
    /// # Errors
    /// [`RendezvousError`] if they are not the descriptors of a segment.
    pub unsafe fn adopt(memory: OwnedFd, eventfds: Vec<OwnedFd>) -> Result<Self, RendezvousError> {
        let mapping = Mapping::from_peer(memory, u64::MAX, true)?;
        let bells = mapping.plan().bells.max(1) as usize;
        let (got, announced) = (eventfds.len() as u64, bells as u64);
        if !got.is_multiple_of(announced) || got / announced > u64::from(WAITER_SLOTS) {
            return Err(PeerViolation::Descriptors { got, announced }.into());
        }
        let per_bell = eventfds.len() / bells;
        let mut eventfds = eventfds.into_iter();
        let of_bells = (0..bells).map(|_| eventfds.by_ref().take(per_bell).collect()).collect();
        let holder = match crate::directory::read_namespace(&mapping)? {
            0 => Holder::Given(mapping.next_holder()),
            namespace => Holder::process(namespace),
        };
        Ok(Self::assemble(mapping, of_bells, holder)?)
    }

    /// A handle of bell number `index`. It has heard all rings so
    /// far. `None` if there is no such bell.
    pub fn bell(&self, index: u32) -> Option<Bell> {
        self.bell_waiting_by(index)
    }

    /// As [`bell`](Self::bell), with a chosen [way of waiting](crate::wait).
    pub fn bell_waiting_by<W: Wait + Default>(&self, index: u32) -> Option<Bell<W>> {
        Some(Bell::at(Arc::clone(self.state(index)?)))
    }

    /// Bell number `index` for those who build on it. `None` if there is no such bell.
    pub fn state(&self, index: u32) -> Option<&Arc<BellState>> {
        self.states.get(index as usize)
    }

    /// The memory.
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// The lanes of its channels, if it has any.
    pub fn lanes(&self) -> Option<&Lanes> {
        self.lanes.as_ref()
    }

    /// How many messages lie in the ring of lane `lane`: about, while it is used, and those among
    /// them whose room the receiver has not given back. `None` if there is no such lane.
    pub fn messages(&self, lane: u32) -> Option<usize> {
        crate::directory::look_at_lane(&self.mapping, lane).map(|(_, messages, _, _)| messages)
    }

    /// What lies beside the bells. Empty if that is channels.
    pub fn payload(&self) -> PeerMemory<'_> {
        self.mapping.payload()
    }

    /// May a handle of trust `T` be made here? See [`Lives::lend`].
    pub(crate) fn trusts<T: Trust>(&self) -> bool {
        !T::TRUSTED || self.lives.lend()
    }

    /// The wishes about memory that could not be granted.
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }

    /// Says whether a peer of trust `T` may have this segment. To be asked before it is given
    /// anything: what it has it keeps, whatever becomes of the rendezvous. Returns the hold to
    /// keep for as long as it is shared.
    fn admit<T: Trust>(&self) -> Result<Option<Arc<dyn Hold>>, RendezvousError> {
        if !T::TRUSTED && self.states.iter().any(|state| state.eventfd_slots() > 0) {
            // Rings will need it: better told now than found out then.
            Signaller::ours().map_err(|(call, errno)| RendezvousError::Os { call, errno })?;
        }
        if !T::TRUSTED && self.mapping.can_be_punched() {
            return Err(MapError::HugePages.into());
        }
        let under = self.origin.hold().map_err(|HungUp| RendezvousError::HungUp)?;
        // Last, for it lasts.
        if self.lives.admit::<T>() { Ok(under) } else { Err(RendezvousError::Lent) }
    }

    /// Listens for the hang-up of a peer that was counted among the
    /// living. If that cannot be done, it is counted no more.
    fn watch_over(
        self: &Arc<Self>,
        peer: PeerId,
        file: OwnedFd,
        under: Option<Arc<dyn Hold>>,
        holder: u32,
        side: Side,
    ) -> Result<Arc<ConnectionHold>, RendezvousError> {
        let dying = Arc::clone(self);
        ConnectionHold::new(Arc::clone(self), file, under, move || dying.peer_died(peer, holder, side))
            .inspect_err(|_| self.let_go())
    }

    /// A peer hung up or died that takes waiter slots as `holder`: tells the waiters. If it had the
    /// segment from us, gives its waiter slots and its places at lanes to others; if we have it
    /// from the peer, that may only have hung up on us and go on with others.
    fn peer_died(&self, peer: PeerId, holder: u32, side: Side) {
        let (lanes, settles) = (self.lanes.as_ref(), side == Side::Host);
        bury(&self.mapping, lanes, &self.states, &self.lives, peer, holder, settles);
    }

    /// This process hangs up on a peer that was alive.
    fn let_go(&self) {
        self.lives.let_go();
        if self.lives.all_gone().is_some() {
            // Nobody is left who could wake them.
            self.states.iter().for_each(|state| state.wake_everybody());
        }
    }
}

/// Which part this process has in a rendezvous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// It shares its segment.
    Host,
    /// It gets the segment.
    Joiner,
}

/// One peer met, and the segment shared with it.
///
/// Dropping it hangs up, unless ends of channels are held that were taken over
/// it, or bells of a segment that was joined over it which hold a waiter slot
/// (from their first wait on by [`Eventfd`](crate::wait::Eventfd), or as a
/// [file](Bell::into_fd)): then the last of them does. Other bells go on ringing
/// and waiting without it, but hear of no death, and get no waiter slot any more.
#[derive(Debug)]
pub struct Connection<T: Trust = Untrusted> {
    hold: Arc<ConnectionHold>,
    peer: Peer,
    trust: PhantomData<T>,
}

impl<T: Trust> Connection<T> {
    /// `holder` is the number the peer takes waiter slots by, `under`
    /// what its admission said to keep.
    fn new(
        segment: &Arc<Segment>,
        under: Option<Arc<dyn Hold>>,
        peer: Peer,
        socket: OwnedFd,
        holder: u32,
        side: Side,
    ) -> Result<Self, RendezvousError> {
        segment.lives.met();
        let hold = segment.watch_over(peer.id, socket, under, holder, side)?;
        if side == Side::Joiner {
            segment.origin.set(Arc::<ConnectionHold>::downgrade(&hold));
        }
        Ok(Self { hold, peer, trust: PhantomData })
    }

    /// As [`Segment::attach_context`], and keeps this connection's hold too.
    pub(crate) fn attach_context(&self) -> Result<AttachContext<'_>, HungUp> {
        let AttachContext { segment, .. } = self.segment().attach_context()?;
        Ok(AttachContext { segment, hold: Some(self.hold.clone()), processes: None })
    }

    /// What ends that were taken over it keep of it.
    pub(crate) fn hold(&self) -> &Arc<ConnectionHold> {
        &self.hold
    }

    /// The segment shared with the peer.
    pub fn segment(&self) -> &Arc<Segment> {
        self.hold.segment()
    }

    /// The peer.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// A handle of bell number `index`. It has heard all rings so
    /// far. `None` if there is no such bell.
    pub fn bell(&self, index: u32) -> Option<Bell> {
        self.segment().bell(index)
    }

    /// As [`bell`](Self::bell), with a chosen [way of waiting](crate::wait).
    pub fn bell_waiting_by<W: Wait + Default>(&self, index: u32) -> Option<Bell<W>> {
        self.segment().bell_waiting_by(index)
    }
}

#[cfg(test)]
mod tests {
    use super::{Offer, RendezvousError, Segment, Side};
    use crate::error::WaitError;
    use crate::peer::PeerId;
    use crate::wait::Futex;
    use rustix::fs::{MemfdFlags, memfd_create};
    use rustix::io::Errno;
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// It was counted no more, and nobody told the sleepers that with
    /// it the last of the living had gone.
    #[test]
    fn a_rendezvous_that_fails_at_last_leaves_nobody_asleep() {
        let segment = Arc::new(Segment::new(&Offer::default()).unwrap());
        let mut bell = segment.bell_waiting_by::<Futex>(0).unwrap();
        let dead = PeerId { number: 7, pid: 7 };
        segment.lives.met();
        segment.peer_died(dead, 7, Side::Host);
        assert_eq!(bell.wait(), Err(WaitError::PeerGone(dead)));
        // The next: as long as it may be there, a wait goes on.
        segment.lives.met();
        assert_eq!(bell.wait_timeout(Duration::from_millis(1)), Ok(None));
        let ((say, said), (tell, told)) = (channel(), channel());
        std::thread::spawn(move || {
            say.send(rustix::thread::gettid()).unwrap();
            // Without a deadline: with one it would look once more when its time is up.
            tell.send(bell.wait()).unwrap();
        });
        let stat = format!("/proc/self/task/{}/stat", said.recv().unwrap());
        // Who has armed may be about to look again, and needs no wake to see what there is.
        let asleep = || std::fs::read_to_string(&stat).unwrap().rsplit_once(") ").unwrap().1.starts_with('S');
        while !(segment.state(0).unwrap().record().wake.has_sleepers() && asleep()) {
            std::thread::yield_now();
        }
        // epoll takes no file that is always ready.
        let no_socket = memfd_create("no socket", MemfdFlags::CLOEXEC).unwrap();
        let failed = segment.watch_over(PeerId { number: 8, pid: 8 }, no_socket, None, 8, Side::Host);
        assert_eq!(failed.unwrap_err(), RendezvousError::Os { call: "epoll_ctl", errno: Errno::PERM });
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(Err(WaitError::PeerGone(dead))), "hung");
    }
}
