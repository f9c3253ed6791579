// SPDX-License-Identifier: MIT OR Apache-2.0
//! The publishing end of a broadcast.

use super::error::JoinError;
use super::log::LogMemory;
use super::subscriber::Subscriber;
use crate::bell_state::BellState;
use crate::channel::lane::{Departure, End, Lane, Partner, forget_departed};
use crate::channel::receiver::MOST_TURNS;
use crate::channel::{AttachError, SendError};
use crate::deadline::Deadline;
use crate::descriptor;
use crate::error::WaitError;
use crate::generation::{news, news_to_keep};
use crate::mapping::MapError;
use crate::peer::{PeerId, Trust, Trusted};
use crate::process::Process;
use crate::rendezvous::{AttachContext, Connection, Offer, Segment};
use crate::wait::{Adaptive, Listener, Token, Wait, WaitEntry};
use doorbell_core::channel::arithmetic::{advanced, passes};
use doorbell_core::channel::broadcast;
use doorbell_core::channel::layout::Lanes;
use doorbell_core::fault;
use doorbell_core::violation::PeerViolation;
use doorbell_core::wake::{WAITER_SLOTS, Waiter, listen};
use rustix::fd::BorrowedFd;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// What happens when a message would overwrite one that a subscriber has not received. Chosen by
/// the publisher for each subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenSlow {
    /// The publisher waits, until its deadline. For subscribers it depends on and trusts to go on:
    /// one that stops holds up all.
    HoldBack,
    /// The subscription ends: the subscriber is told
    /// [`RecvError::Dropped`](crate::channel::RecvError::Dropped),
    /// the publisher [`Ended::Dropped`].
    Drop,
    /// The subscriber misses messages, and is told how many.
    Gap,
}

/// How a subscription ended that the publisher did not end itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The subscriber left.
    Left,
    /// The kernel reported that its process went.
    Gone(PeerId),
    /// It was too slow ([`WhenSlow::Drop`]).
    Dropped,
    /// It broke the protocol.
    Violation(PeerViolation),
}

/// One message to many subscribers. Each has its own cursor and sees
/// every message from its admission on.
///
/// The log is written by the publisher alone: it is sealed so that no other process can ever map it
/// writable. What a subscriber writes lies in the segment it shares with the publisher alone, so
/// that none can disturb another.
///
/// ```
/// use doorbell::channel::broadcast::{Publisher, WhenSlow};
///
/// let mut publisher: Publisher = Publisher::new(1 << 16)?;
/// let mut first = publisher.subscribe(WhenSlow::HoldBack)?;
/// let mut second = publisher.subscribe(WhenSlow::Gap)?;
/// publisher.publish(b"to all")?;
/// let mut message = Vec::new();
/// assert_eq!(first.recv_into(&mut message)?, 0, "none was missed");
/// assert_eq!(message, b"to all");
/// second.recv_into(&mut message)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Publisher<W: Wait = Adaptive> {
    log: LogMemory,
    index: broadcast::Publisher,
    places: Vec<Place>,
    /// Where the subscribers wait, each once.
    bells: Vec<Arc<BellState>>,
    /// Of the subscribers in this process.
    segments: Vec<Arc<Segment>>,
    /// How far the floor may go before anybody must be asked.
    free: u64,
    /// Of this process, when the subscribers were last asked.
    news: u64,
    process: Process,
    next_number: u64,
    /// So many of the last messages a subscriber is given that comes.
    history: usize,
    /// Of the last that ended, at most [`REMEMBERED`].
    ended: VecDeque<(u64, Ended)>,
    /// At so many subscribers those are looked for who have gone.
    look_at: usize,
    interruptible: bool,
    way: W,
}

/// So many subscribers in this process share a bell: each may take a waiter slot for an eventfd.
const LANES: usize = WAITER_SLOTS as usize;

/// So many ended subscriptions are kept for one who may never ask.
const REMEMBERED: usize = 1024;

/// A new subscriber's number, and where in the log it begins.
struct Begin {
    number: u64,
    cursor: u64,
    published: u64,
}

/// A subscriber as the publisher sees it.
#[derive(Debug)]
struct Place {
    number: u64,
    end: End,
    subscriber: Partner,
    listener: Listener,
    slow: WhenSlow,
    /// The last cursor that was checked.
    cursor: u64,
    /// Last: with it goes the hold, by which the subscriber knows that we live.
    lane: Lane,
}

impl Publisher {
    /// A log of at least `capacity` bytes, without subscribers. The
    /// longest message takes about three eighths of it.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn new(capacity: u64) -> Result<Self, MapError> {
        Self::waiting_by(capacity)
    }
}

impl<W: Wait + Default> Publisher<W> {
    /// As [`new`](Self::new), with a chosen [way of
    /// waiting](crate::wait) for subscribers that hold it back.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn waiting_by(capacity: u64) -> Result<Self, MapError> {
        let log = LogMemory::new(capacity)?;
        let index = broadcast::Publisher::new(log.capacity());
        Ok(Self {
            log,
            index,
            places: Vec::new(),
            bells: Vec::new(),
            segments: Vec::new(),
            process: Process::current(),
            free: 0,
            news: news_to_keep(),
            next_number: 0,
            history: 0,
            ended: VecDeque::new(),
            look_at: LANES,
            interruptible: false,
            way: W::default(),
        })
    }
}

impl<W: Wait> Publisher<W> {
    /// A subscriber in this process, which may be given to another thread. It receives what is
    /// published from now on, after the [history](Self::set_history).
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn subscribe(&mut self, slow: WhenSlow) -> Result<Subscriber<Trusted>, JoinError> {
        self.subscribe_waiting_by(slow)
    }

    /// As [`subscribe`](Self::subscribe), with a chosen [way of
    /// waiting](crate::wait) for the subscriber.
    ///
    /// # Errors
    /// As [`subscribe`](Self::subscribe).
    pub fn subscribe_waiting_by<V: Wait + Default>(
        &mut self,
        slow: WhenSlow,
    ) -> Result<Subscriber<Trusted, V>, JoinError> {
        for number in 0.. {
            let (segment, lane) = (number / LANES, (number % LANES) as u32);
            if segment == self.segments.len() {
                let lanes = Lanes::new(LANES as u32, 1, 0).expect("a few small lanes fit");
                self.segments.push(Arc::new(Segment::for_threads(&Offer {
                    eventfds: WAITER_SLOTS,
                    ..Offer::of_lanes(lanes)
                })?));
            }
            let segment = Arc::clone(&self.segments[segment]);
            match self.subscribe_on(&segment, lane, slow) {
                // One of the others has it, or one that was dropped and has not left.
                Err(JoinError::Attach(AttachError::Taken { .. })) => {}
                result => return result,
            }
        }
        unreachable!("a new segment has free lanes")
    }

    fn subscribe_on<V: Wait + Default>(
        &mut self,
        segment: &Segment,
        lane: u32,
        slow: WhenSlow,
    ) -> Result<Subscriber<Trusted, V>, JoinError> {
        let attach_context = segment.attach_context().map_err(AttachError::from)?;
        let Begin { cursor, published, .. } = self.slot(attach_context.clone(), lane, slow)?;
        let subscriber = descriptor::duplicate(self.log.file())
            .map_err(|errno| crate::mapping::os("F_DUPFD_CLOEXEC")(errno).into())
            .and_then(|file| {
                let log = LogMemory::from_peer(file, u64::MAX, true)?;
                Subscriber::on(attach_context, lane, log, cursor, published)
            });
        if subscriber.is_err() {
            self.places.pop();
            self.gather_bells();
        }
        subscriber
    }

    /// Admits the peer of `connection`, which calls [`Subscriber::join`] with the same `lane` of
    /// the segment they share. It receives what is published from now on, after the
    /// [history](Self::set_history). Returns its number here. The connection may be dropped: the
    /// connection is kept until the subscription ends.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn admit<T: Trust>(
        &mut self,
        connection: &Connection<T>,
        lane: u32,
        slow: WhenSlow,
    ) -> Result<u64, JoinError> {
        let attach_context = connection.attach_context().map_err(AttachError::from)?;
        let Begin { number, cursor, published } = self.slot(attach_context, lane, slow)?;
        let sent = connection.send_log(lane, cursor, published, self.log.file());
        if let Err(error) = sent {
            // The caller has no number to end it by, and it would hold back everybody.
            self.places.pop();
            self.gather_bells();
            return Err(error.into());
        }
        Ok(number)
    }

    fn slot(
        &mut self,
        attach_context: AttachContext<'_>,
        lane_number: u32,
        slow: WhenSlow,
    ) -> Result<Begin, JoinError> {
        // Nobody may publish for a long time. All are looked at when
        // there are twice as many as stayed at the last look.
        if self.places.len() >= self.look_at {
            self.look_at_all();
            self.look_at = (2 * self.places.len()).max(LANES);
        }
        let lane = Lane::new(attach_context, lane_number)?;
        let end = End::take(&lane, &lane.control().sender, lane_number)?;
        let (cursor, published) =
            self.index.history(self.history as u64, &self.log).map_err(JoinError::Violation)?;
        let control = lane.control();
        fault::point();
        control.released.store(cursor, Ordering::Relaxed);
        fault::point();
        // What is left of an earlier subscription is none of this one's business.
        control.dropped.store(0, Ordering::Relaxed);
        forget_departed(&control.receiver, &lane.room_state);
        let subscriber = Partner::new(&lane, &lane.message_state);
        let mut listener = Listener::new(&lane.room_state, W::NAME);
        listener.set_interruptible(self.interruptible);
        let number = self.next_number;
        self.next_number += 1;
        // Nobody is asked below this one's cursor, nor has been above it.
        self.free = self.index.floor();
        self.places.push(Place { number, lane, end, subscriber, listener, slow, cursor });
        self.gather_bells();
        Ok(Begin { number, cursor, published })
    }

    /// Gives whoever subscribes from now on the last `most` messages first, or as many of them as
    /// the log still has: 0, if this is not called. One that is held back for, or dropped, is
    /// as far behind from its beginning on.
    ///
    /// ```
    /// use doorbell::channel::broadcast::{Publisher, WhenSlow};
    ///
    /// let mut publisher: Publisher = Publisher::new(4096)?;
    /// publisher.set_history(1);
    /// publisher.publish(b"an old state")?;
    /// publisher.publish(b"the state")?;
    /// let mut late = publisher.subscribe(WhenSlow::Gap)?;
    /// let mut message = Vec::new();
    /// late.recv_into(&mut message)?;
    /// assert_eq!(message, b"the state");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_history(&mut self, most: usize) {
        self.history = most;
    }

    /// Whether a signal that this thread handles ends a wait for a subscriber
    /// ([`WaitError::Interrupted`](crate::WaitError::Interrupted)). It does
    /// not if this is not called.
    pub fn set_interruptible(&mut self, interruptible: bool) {
        self.interruptible = interruptible;
        self.places.iter_mut().for_each(|place| place.listener.set_interruptible(interruptible));
    }

    /// How many subscribers there are, of whom some may have gone since the last look: at the least
    /// at every turn of the log.
    pub fn subscribers(&self) -> usize {
        self.places.len()
    }

    /// The longest message, in bytes.
    pub fn longest(&self) -> u64 {
        broadcast::longest_message(self.log.capacity())
    }

    /// Whose subscriptions ended since the last call, and how: the last 1024 of them. A
    /// subscriber's end never fails a publication.
    pub fn ended(&mut self) -> Vec<(u64, Ended)> {
        self.look_at_all();
        std::mem::take(&mut self.ended).into()
    }

    /// Publishes `message`. Waits while a subscriber that may do so holds it back.
    ///
    /// # Errors
    /// [`SendError::TooLong`], [`SendError::Wait`].
    pub fn publish(&mut self, message: &[u8]) -> Result<(), SendError> {
        loop {
            // Only `Null` gives up without a deadline.
            match self.publish_deadline(message, None) {
                Err(SendError::TimedOut) => {}
                result => return result,
            }
        }
    }

    /// As [`publish`](Self::publish), but waits no longer than until
    /// `deadline`; for ever if there is none.
    ///
    /// # Errors
    /// [`SendError::TimedOut`] if a subscriber held it back till
    /// then; [`SendError::TooLong`], [`SendError::Wait`].
    pub fn publish_deadline(&mut self, message: &[u8], deadline: Option<Deadline>) -> Result<(), SendError> {
        let floor = self.wait_for_room(message.len() as u64, deadline)?;
        self.put(floor, message.len() as u64, |log, at| log.write(at, message));
        Ok(())
    }

    /// Publishes a message of `length` bytes that `write` makes where
    /// subscribers find it. Waits, before that, until `deadline` while a
    /// subscriber that may do so holds it back; for ever if there is none. What
    /// `write` leaves out has the bytes that an earlier message left there.
    ///
    /// ```
    /// use doorbell::channel::broadcast::{Publisher, Subscriber, WhenSlow};
    /// use doorbell::peer::Trusted;
    ///
    /// let mut publisher: Publisher = Publisher::new(4096)?;
    /// let mut subscriber: Subscriber<Trusted> = publisher.subscribe(WhenSlow::HoldBack)?;
    /// publisher.publish_in_place(9, None, |draft| {
    ///     draft.write(0, b"head");
    ///     draft.write(4, b", body");
    /// })?;
    /// let mut message = Vec::new();
    /// subscriber.recv_into(&mut message)?;
    /// assert_eq!(message, b"head, bod", "a draft is as long as was said");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`publish_deadline`](Self::publish_deadline). If `write` panics, nothing is published.
    pub fn publish_in_place(
        &mut self,
        length: usize,
        deadline: Option<Deadline>,
        write: impl FnOnce(&mut Draft<'_>),
    ) -> Result<(), SendError> {
        let floor = self.wait_for_room(length as u64, deadline)?;
        self.put(floor, length as u64, |log, place| write(&mut Draft { log, place, length }));
        Ok(())
    }

    fn wait_for_room(&mut self, length: u64, deadline: Option<Deadline>) -> Result<u64, SendError> {
        let floor = self.floor_for(length)?;
        while let Some(blocker) = self.blocker(floor) {
            if !self.wait_for(blocker, floor, deadline)? {
                return Err(SendError::TimedOut);
            }
        }
        Ok(floor)
    }

    /// As [`publish`](Self::publish), but does not wait.
    ///
    /// # Errors
    /// [`SendError::Full`] if a subscriber holds it back; [`SendError::TooLong`].
    pub fn try_publish(&mut self, message: &[u8]) -> Result<(), SendError> {
        let floor = self.floor_for(message.len() as u64)?;
        if self.blocker(floor).is_some() {
            return Err(SendError::Full);
        }
        self.put(floor, message.len() as u64, |log, at| log.write(at, message));
        Ok(())
    }

    /// Before which index nothing may be needed any more when a
    /// message of `length` bytes is published.
    fn floor_for(&self, length: u64) -> Result<u64, SendError> {
        let longest = self.longest();
        if length > longest {
            return Err(SendError::TooLong { length, longest });
        }
        if self.news != news() && !self.process.is_current() {
            return Err(SendError::Forked);
        }
        Ok(self.index.floor_for(length, &self.log)?)
    }

    /// Publishes what `write` writes in the place of what lies before
    /// `floor`, which holds nobody back.
    fn put(&mut self, floor: u64, length: u64, write: impl FnOnce(&LogMemory, u64)) {
        let before = self.index.tail();
        self.index.publish(floor, length, &self.log, |at| write(&self.log, at));
        // One for all: N2 of each announcement. Pairs with W4 of each subscriber.
        fence(Ordering::SeqCst);
        for bell in &self.bells {
            if bell.record().wake.has_sleepers() {
                self.wake(bell, before);
            }
        }
    }

    /// Before going back to the event loop: does anybody hold back a message of `length` bytes
    /// after all? If so, a file that becomes readable when that subscriber has gone on, or
    /// gone; there may then be another who holds it back. For epoll, poll, mio or tokio, level-
    /// or edge-triggered. `None` if nobody does, if publishing has an error to tell, or if
    /// those who do went on a few times while this looked: try to publish again, and do not sleep.
    ///
    /// Call it when [`try_publish`](Self::try_publish) found the log full. Takes a waiter slot for
    /// eventfds at the bell at which the publisher waits for that subscriber, until the
    /// subscription ends. Never read from the file or write to it yourself.
    ///
    /// ```
    /// use doorbell::channel::SendError;
    /// use doorbell::channel::broadcast::{Publisher, Subscriber, WhenSlow};
    /// use doorbell::peer::Trusted;
    /// use rustix::event::{PollFd, PollFlags, poll};
    ///
    /// let mut publisher: Publisher = Publisher::new(4096)?;
    /// let mut subscriber: Subscriber<Trusted> = publisher.subscribe(WhenSlow::HoldBack)?;
    /// while publisher.try_publish(&[7; 500]) != Err(SendError::Full) {}
    /// let file = rustix::io::dup(publisher.listen(500)?.expect("the subscriber holds it back"))?;
    /// while subscriber.try_recv_into(&mut Vec::new())?.is_some() {}
    /// poll(&mut [PollFd::new(&file, PollFlags::IN)], None)?;
    /// publisher.try_publish(&[7; 500])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`WaitError::NoWaiterSlot`], [`WaitError::Os`].
    pub fn listen(&mut self, length: usize) -> Result<Option<BorrowedFd<'_>>, WaitError> {
        self.arm(length as u64)?.map(Listener::file).transpose()
    }

    /// As `End::check_ours`.
    pub(crate) fn check_ours(&self) -> Result<(), WaitError> {
        if self.process.is_current() { Ok(()) } else { Err(WaitError::Forked) }
    }

    /// As `listen`: the waiter whose file it is.
    pub(crate) fn arm(&mut self, length: u64) -> Result<Option<&mut Listener>, WaitError> {
        self.check_ours()?;
        for _ in 0..MOST_TURNS {
            let Ok(floor) = self.floor_for(length) else { break };
            let Some(at) = self.blocker(floor) else { break };
            let (slot, index) = self.places[at].listener.slots().take_eventfd()?;
            let place = &self.places[at];
            place.want(floor);
            let state = &*place.lane.room_state;
            let mut waiter = [Waiter::new(&state.record().wake, slot)];
            if !listen(&mut waiter, &mut Token { state, index }, || {
                may_go_on(&place.lane, &place.subscriber, place.cursor, floor)
            })? {
                return Ok(self.places.get_mut(at).map(|place| &mut place.listener));
            }
        }
        Ok(None)
    }

    /// The waiters at those who can hold back a message.
    #[cfg(feature = "tokio")]
    pub(crate) fn listeners(&mut self) -> impl Iterator<Item = &mut Listener> {
        let can = |place: &&mut Place| place.slow == WhenSlow::HoldBack;
        self.places.iter_mut().filter(can).map(|place| &mut place.listener)
    }

    /// Somebody who holds back the floor from `floor`. Ends the
    /// subscriptions of those who went, lied, or are too slow.
    #[inline]
    fn blocker(&mut self, floor: u64) -> Option<usize> {
        let until_floor = floor.wrapping_sub(self.index.floor());
        if until_floor <= self.free.wrapping_sub(self.index.floor()) && self.news == news() {
            return None;
        }
        self.blocker_among_all(floor)
    }

    #[cold]
    #[inline(never)]
    fn blocker_among_all(&mut self, floor: u64) -> Option<usize> {
        self.news = news_to_keep();
        let moves = floor != self.index.floor();
        // Nobody can be further behind than the tail.
        let mut free = self.index.tail();
        let mut at = 0;
        while let Some(place) = self.places.get_mut(at) {
            let state = place.look(self.index.tail(), self.log.capacity().get());
            let is_behind = floor.wrapping_sub(place.cursor).wrapping_sub(1) < 1 << 63;
            match state {
                Err(ended) => self.end(at, ended),
                Ok(()) if moves && is_behind => match place.slow {
                    WhenSlow::HoldBack => return Some(at),
                    WhenSlow::Drop => self.end(at, Ended::Dropped),
                    WhenSlow::Gap => at += 1,
                },
                Ok(()) => {
                    let cursor = place.cursor.wrapping_sub(floor);
                    if place.slow != WhenSlow::Gap && cursor < free.wrapping_sub(floor) {
                        free = place.cursor;
                    }
                    at += 1;
                }
            }
        }
        self.free = free;
        None
    }

    /// Finds out which bells the subscribers wait at: threads share some.
    fn gather_bells(&mut self) {
        self.bells.clear();
        for place in &self.places {
            let bell = &place.lane.message_state;
            if !self.bells.iter().any(|known| Arc::ptr_eq(known, bell)) {
                self.bells.push(Arc::clone(bell));
            }
        }
    }

    /// Wakes those who sleep at `bell`, if the index from `before` to
    /// now is what one of them waits for.
    #[cold]
    fn wake(&self, bell: &Arc<BellState>, before: u64) {
        let now = self.index.tail();
        let mut here = self.places.iter().filter(|place| Arc::ptr_eq(bell, &place.lane.message_state));
        bell.wake_if_any(bell.record().wake.announce_behind_fence_if(|| {
            here.any(|place| passes(place.lane.control().message_wanted.load(Ordering::Relaxed), before, now))
        }));
    }

    /// Ends the subscriptions of those who went or lied.
    fn look_at_all(&mut self) {
        let mut at = 0;
        while let Some(place) = self.places.get_mut(at) {
            match place.look(self.index.tail(), self.log.capacity().get()) {
                Ok(()) => at += 1,
                Err(ended) => self.end(at, ended),
            }
        }
    }

    fn end(&mut self, at: usize, ended: Ended) {
        let place = self.places.swap_remove(at);
        self.gather_bells();
        if self.ended.len() == REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back((place.number, ended));
        if ended == Ended::Dropped {
            fault::point();
            // Before it leaves: the subscriber reads it after the word.
            place.lane.control().dropped.store(1, Ordering::Relaxed);
        }
    }

    fn wait_for(&mut self, at: usize, floor: u64, deadline: Option<Deadline>) -> Result<bool, SendError> {
        let Self { places, way, .. } = self;
        let Some(place) = places.get_mut(at) else { return Ok(true) };
        place.want(floor);
        let Place { lane, subscriber, listener, cursor, .. } = place;
        let ready = || may_go_on(lane, subscriber, *cursor, floor);
        let state = &lane.room_state;
        let woken = way.wait(&mut [WaitEntry { state, listener }], ready, deadline)?;
        // A hostile subscriber can wake us for ever.
        Ok(woken && !deadline.is_some_and(|deadline| deadline.passed()))
    }
}

/// A message that is being made where subscribers will find it. See
/// [`Publisher::publish_in_place`].
#[derive(Debug)]
pub struct Draft<'a> {
    log: &'a LogMemory,
    place: u64,
    length: usize,
}

impl Draft<'_> {
    /// How many bytes it has.
    pub fn size(&self) -> usize {
        self.length
    }

    /// Copies `bytes` to offset `at` of the message, as far as they fit. Returns how many did.
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> usize {
        let fitting = bytes.len().min(self.length.saturating_sub(at));
        self.log.write_part(self.place + at.min(self.length) as u64, &bytes[..fitting]);
        fitting
    }
}

/// For the `ready` of a wait: has a subscriber that was at `seen` gone on to `floor`, or gone?
fn may_go_on(lane: &Lane, subscriber: &Partner, seen: u64, floor: u64) -> bool {
    let control = lane.control();
    let now = control.released.load(Ordering::Acquire);
    now.wrapping_sub(seen) >= floor.wrapping_sub(seen) || subscriber.may_have_gone(&control.receiver)
}

impl Place {
    /// Says that the publisher wants to be woken when this subscriber has gone on to `floor`.
    /// Before it arms: `Subscriber::release` reads it after its fence.
    fn want(&self, floor: u64) {
        fault::point();
        self.lane.control().room_wanted.store(floor.wrapping_sub(1), Ordering::Relaxed);
    }

    /// Is it still there, and is its cursor one it can have?
    fn look(&mut self, tail: u64, capacity: u64) -> Result<(), Ended> {
        let control = self.lane.control();
        if self.subscriber.may_have_gone(&control.receiver) {
            match self.subscriber.departed(&control.receiver, &self.end) {
                None | Some(Departure::Forked) => {}
                Some(Departure::Left) => return Err(Ended::Left),
                Some(Departure::Gone(peer)) => return Err(Ended::Gone(peer)),
            }
        }
        // Acquire: its reads come before what we write over them.
        let now = control.released.load(Ordering::Acquire);
        match advanced(self.cursor, now, tail, capacity) {
            Ok(cursor) => self.cursor = cursor,
            // One that was overtaken sees a gap; its cursor may lie anywhere after the tail.
            Err(violation) => return Err(Ended::Violation(violation)),
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.end.leave(&self.lane.control().sender);
        self.lane.message_state.announce();
    }
}
