// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many senders, one receiver.

use super::error::RecvError;
use super::makers::Makers;
use super::message::Message;
use super::receiver::MOST_TURNS;
use super::ring_reader::RingReader;
use crate::attach_error::AttachError;
use crate::bell_state::BellState;
use crate::deadline::Deadline;
use crate::error::WaitError;
use crate::peer::{Trust, Trusted, Untrusted};
use crate::process::Process;
use crate::rendezvous::{AttachContext, Connection, Segment};
use crate::select::{Parts, Source};
use crate::wait::{Adaptive, Listener, Token, Wait, WaitEntry};
use doorbell_core::channel::lane::Found;
use doorbell_core::wake::{Waiter, listen};
use rustix::fd::{AsFd, BorrowedFd};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// The receiving end of many lanes: several producers, one consumer.
///
/// Every sender has a lane of its own. They share no index, so none waits for another, and one that
/// is killed in the middle of a message leaves its own lane as it was before and the others alone.
/// Lanes with messages are asked in turn, and after four times as many messages as there are lanes,
/// and at least 32, all are asked: each gets its chance, however busy another is, and a
/// message costs the same however many lanes are idle. Messages of one sender arrive in order;
/// nothing is said about the order of two senders.
///
/// Lanes of one segment share one bell and one mapping, which all its senders can write: for
/// threads, and for processes that trust each other ([`Lanes::new(senders, 1,
/// capacity)`](super::Lanes::new)). Give each untrusted sender a segment of its own, and
/// [`add`](Self::add) its lane: nothing it writes can reach another's messages or bell. The
/// futex, and with it [`Adaptive`], waits for at most 128 bells at once;
/// [`Eventfd`](crate::wait::Eventfd) for as many as there are descriptors.
///
/// ```
/// let (senders, mut gather) = doorbell::channel::many(3, 4096)?;
/// for (number, mut sender) in senders.into_iter().enumerate() {
///     std::thread::spawn(move || sender.send(format!("from {number}").as_bytes()).unwrap());
/// }
/// for _ in 0..3 {
///     let (lane, message) = gather.recv()?;
///     assert_eq!(message.to_vec(), format!("from {lane}").as_bytes());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Gather<T: Trust = Untrusted, W: Wait = Adaptive> {
    bells: Vec<(Arc<BellState>, Listener)>,
    /// The lane to ask first when all are asked.
    turn: usize,
    /// Lanes that had messages when all were asked, and may have more.
    busy: Vec<usize>,
    /// The place in `busy` to ask next.
    next: usize,
    /// So many messages are taken from the busy lanes before all are asked again.
    left: usize,
    way: W,
    trust: PhantomData<T>,
    /// Of senders that are made one after another: who makes them.
    makers: Option<Arc<Makers>>,
    /// Last: with each goes the hold by which the other side knows that we live.
    readers: Vec<Option<RingReader>>,
}

/// At least so many messages are taken before all lanes are asked
/// again: asking costs as much as a few messages.
const FEWEST: usize = 32;

/// What a look at all lanes found.
pub(crate) enum Polled {
    Found((usize, Found)),
    Nothing,
    /// No sender is left, and each that died or lied has been told of.
    Over(GatherError),
}

/// What happened to one of the senders: it died, or lied. It is told once; the other lanes go on.
///
/// That a sender left in order ([`RecvError::Closed`]) is told when no sender is left at any lane.
/// Then the end of one of them is told again and again, until another attaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatherError {
    /// The lane, numbered in the order in which they were added. `None` if the wait itself failed,
    /// or if there is no lane ([`RecvError::Closed`]).
    pub lane: Option<usize>,
    /// What happened.
    pub error: RecvError,
}

impl fmt::Display for GatherError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(lane) = self.lane {
            write!(f, "lane {lane}: ")?;
        }
        self.error.fmt(f)
    }
}

impl std::error::Error for GatherError {}

impl From<WaitError> for GatherError {
    fn from(error: WaitError) -> Self {
        Self { lane: None, error: error.into() }
    }
}

impl<T: Trust, W: Wait + Default> Default for Gather<T, W> {
    fn default() -> Self {
        Self {
            readers: Vec::new(),
            bells: Vec::new(),
            turn: 0,
            busy: Vec::new(),
            next: 0,
            left: 0,
            way: W::default(),
            trust: PhantomData,
            makers: None,
        }
    }
}

impl<T: Trust> Gather<T> {
    /// Takes the receiving ends of all lanes of receiver number `receiver` of the segment shared
    /// with the peer of `connection`, which may be dropped.
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn attach(connection: &Connection<T>, receiver: u32) -> Result<Self, AttachError> {
        Self::attach_waiting_by(connection, receiver)
    }
}

impl<T: Trust, W: Wait + Default> Gather<T, W> {
    /// As [`attach`](Self::attach), with a chosen [way of waiting](crate::wait).
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn attach_waiting_by(connection: &Connection<T>, receiver: u32) -> Result<Self, AttachError> {
        Self::on(connection.attach_context()?, receiver)
    }

    pub(super) fn on(attach_context: AttachContext<'_>, receiver: u32) -> Result<Self, AttachError> {
        let lanes = *attach_context.segment.lanes().ok_or(AttachError::NoChannels)?;
        let mut gather = Self::default();
        for lane in (0..lanes.lanes()).filter(|lane| lanes.message_bell(*lane) == receiver) {
            gather.add_on(attach_context.clone(), lane)?;
        }
        if gather.readers.is_empty() {
            return Err(AttachError::NoLane { lane: receiver, lanes: lanes.receivers() });
        }
        Ok(gather)
    }
}

impl Gather<Trusted> {
    /// As [`attach`](Self::attach), on a segment whose other users are all trusted: threads of this
    /// process, forked children, those who joined by name.
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn at(segment: &Segment, receiver: u32) -> Result<Self, AttachError> {
        Self::at_waiting_by(segment, receiver)
    }
}

impl<W: Wait + Default> Gather<Trusted, W> {
    /// As [`at`](Self::at), with a chosen [way of waiting](crate::wait).
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn at_waiting_by(segment: &Segment, receiver: u32) -> Result<Self, AttachError> {
        Self::on(segment.attach_context()?, receiver)
    }
}

impl<W: Wait> Gather<Trusted, W> {
    /// As [`add`](Self::add), of a segment whose other users are all trusted.
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn add_at(&mut self, segment: &Segment, lane: u32) -> Result<usize, AttachError> {
        self.add_on(segment.attach_context()?, lane)
    }
}

impl<T: Trust, W: Wait> Gather<T, W> {
    /// Adds lane `lane` of the segment shared with the peer of `connection`, which may be dropped:
    /// the connection is kept until the lane is removed. Returns the lane's number here.
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn add(&mut self, connection: &Connection<T>, lane: u32) -> Result<usize, AttachError> {
        self.add_on(connection.attach_context()?, lane)
    }

    fn add_on(&mut self, attach_context: AttachContext<'_>, lane: u32) -> Result<usize, AttachError> {
        if !attach_context.segment.trusts::<T>() {
            return Err(AttachError::Untrusted);
        }
        self.add_reader(RingReader::on(attach_context, lane)?)
    }

    fn add_reader(&mut self, reader: RingReader) -> Result<usize, AttachError> {
        let state = &reader.lane.message_state;
        let most = W::MOST_BELLS;
        if !self.bells.iter().any(|(bell, _)| Arc::ptr_eq(bell, state)) {
            if self.bells.len() >= most {
                return Err(AttachError::TooManyBells { most });
            }
            self.bells.push((Arc::clone(state), Listener::new(state, W::NAME)));
        }
        let free = self.readers.iter().position(Option::is_none).unwrap_or(self.readers.len());
        if free == self.readers.len() {
            self.readers.push(None);
        }
        self.readers[free] = Some(reader);
        Ok(free)
    }

    /// Leaves lane number `lane`. Its number may be given to the next
    /// that is added. Returns whether there was one.
    pub fn remove(&mut self, lane: usize) -> bool {
        let removed = self.readers.get_mut(lane).and_then(Option::take);
        let readers = &self.readers;
        self.bells.retain(|(bell, _)| {
            readers.iter().flatten().any(|reader| Arc::ptr_eq(bell, &reader.lane.message_state))
        });
        removed.is_some()
    }

    /// How many lanes there are.
    pub fn lanes(&self) -> usize {
        self.readers.iter().flatten().count()
    }

    /// How many messages lie in the rings that were not received yet. More may come meanwhile.
    /// Costs a look at each of them.
    pub fn len(&self) -> usize {
        self.readers.iter().flatten().map(RingReader::count).sum()
    }

    /// Is there no message now? One look at each lane.
    pub fn is_empty(&self) -> bool {
        !self.readers.iter().flatten().any(RingReader::holds_message)
    }

    /// From now on its end is that of `makers`, and it takes the lanes that they make.
    pub(super) fn ends_with(&mut self, makers: Arc<Makers>) {
        self.makers = Some(makers);
    }

    /// Is no sender left of whom anything is to be told?
    pub(super) fn is_over(&self) -> bool {
        let readers = || self.readers.iter().flatten();
        match &self.makers {
            None => readers().all(RingReader::is_over),
            // The order matters: what was sent before the last of them went is seen.
            Some(makers) => makers.are_gone() && !readers().any(RingReader::has_message),
        }
    }

    /// Takes the lanes that were made for more senders.
    #[cold]
    fn take_fresh(&mut self) {
        let fresh =
            self.makers.as_ref().filter(|makers| makers.have_fresh()).map(|makers| makers.take_fresh());
        for reader in fresh.into_iter().flatten() {
            // Each segment has as many lanes as all before it, so their bells are few.
            self.add_reader(reader).expect("128 bells are 2¹²⁸ lanes");
        }
    }

    /// Whether a signal that this thread handles ends a wait ([`WaitError::Interrupted`]). It does
    /// not if this is not called, nor at the bells of lanes added later.
    pub fn set_interruptible(&mut self, interruptible: bool) {
        self.bells.iter_mut().for_each(|(_, listener)| listener.set_interruptible(interruptible));
    }

    /// The next message of any lane, if there is one, and the lane's number.
    ///
    /// # Errors
    /// [`GatherError`].
    #[inline]
    pub fn try_recv(&mut self) -> Result<Option<(usize, Message<'_, T>)>, GatherError> {
        let found = self.poll()?;
        Ok(found.map(|found| self.message(found)))
    }

    /// The next message of any lane, and the lane's number. Waits while there is none.
    ///
    /// # Errors
    /// [`GatherError`].
    pub fn recv(&mut self) -> Result<(usize, Message<'_, T>), GatherError> {
        let found = loop {
            // Only `Null` gives up without a deadline.
            if let Some(found) = self.find(None)? {
                break found;
            }
        };
        Ok(self.message(found))
    }

    /// The next message of any lane, and the lane's number. Waits up
    /// to `timeout` while there is none.
    ///
    /// # Errors
    /// [`GatherError`].
    pub fn recv_timeout(
        &mut self,
        timeout: Duration,
    ) -> Result<Option<(usize, Message<'_, T>)>, GatherError> {
        self.recv_deadline(Some(Deadline::after(timeout)))
    }

    /// The next message of any lane, and the lane's number. Waits until `deadline` while there is
    /// none; for ever if there is no deadline.
    ///
    /// # Errors
    /// [`GatherError`].
    pub fn recv_deadline(
        &mut self,
        deadline: Option<Deadline>,
    ) -> Result<Option<(usize, Message<'_, T>)>, GatherError> {
        let found = self.find(deadline)?;
        Ok(found.map(|found| self.message(found)))
    }

    /// Receives the next message of any lane into `to`, whose content it replaces. Returns the
    /// lane's number. Waits while there is none.
    ///
    /// # Errors
    /// [`GatherError`].
    pub fn recv_into(&mut self, to: &mut Vec<u8>) -> Result<usize, GatherError> {
        let (lane, message) = self.recv()?;
        message.try_take_into(to).map_err(|error| GatherError { lane: Some(lane), error })?;
        Ok(lane)
    }

    /// The message that `poll` found.
    pub(crate) fn message(&mut self, (lane, found): (usize, Found)) -> (usize, Message<'_, T>) {
        let reader = self.readers.get_mut(lane).and_then(Option::as_mut);
        (lane, Message::new(reader.expect("it was just found there"), found))
    }

    #[inline(always)]
    pub(crate) fn poll(&mut self) -> Result<Option<(usize, Found)>, GatherError> {
        match self.poll_busy() {
            Some(found) => Ok(Some(found)),
            None => self.poll_at_leisure(),
        }
    }

    /// The next message of the lane whose turn it is among the busy, unless all are to be asked.
    #[inline(always)]
    fn poll_busy(&mut self) -> Option<(usize, Found)> {
        let lane = *self.busy.get(self.next)?;
        self.left = self.left.checked_sub(1)?;
        let found = self.readers.get_mut(lane)?.as_mut()?.poll_now()?;
        self.next += 1;
        if self.next == self.busy.len() {
            self.next = 0;
        }
        Some((lane, found))
    }

    #[cold]
    #[inline(never)]
    fn poll_at_leisure(&mut self) -> Result<Option<(usize, Found)>, GatherError> {
        match self.poll_lanes()? {
            Polled::Found(found) => Ok(Some(found)),
            Polled::Nothing => Ok(None),
            Polled::Over(error) => Err(error),
        }
    }

    /// Asks the busy lanes that are left, and then all.
    pub(crate) fn poll_lanes(&mut self) -> Result<Polled, GatherError> {
        while self.left > 0 && !self.busy.is_empty() {
            if let Some(found) = self.poll_busy() {
                return Ok(Polled::Found(found));
            }
            // It has nothing more, or something that is told at leisure.
            let at = self.next.min(self.busy.len() - 1);
            let lane = self.busy.swap_remove(at);
            self.next = if at == self.busy.len() { 0 } else { at };
            // Nothing is said about who is asked when all are.
            if let Some(found) = self.poll_lane(lane)? {
                self.busy.push(lane);
                return Ok(Polled::Found((lane, found)));
            }
        }
        self.poll_all()
    }

    /// A message of lane `lane`, or what is told of it for the first
    /// time; but of one that left, nothing.
    fn poll_lane(&mut self, lane: usize) -> Result<Option<Found>, GatherError> {
        let Some(Some(reader)) = self.readers.get_mut(lane) else { return Ok(None) };
        match reader.poll_once() {
            Ok(found) => Ok(found),
            Err((error, true)) if error != RecvError::Closed => Err(GatherError { lane: Some(lane), error }),
            Err(_) => Ok(None),
        }
    }

    /// Finds out which lanes are busy.
    fn find_busy(&mut self, first: usize) {
        let lanes = self.readers.len();
        (self.next, self.left) = (0, (4 * lanes).max(FEWEST));
        self.busy.clear();
        // The one that was just found goes last.
        for lane in (first + 1..lanes).chain(0..=first) {
            if self.readers[lane].as_ref().is_some_and(RingReader::has_message) {
                self.busy.push(lane);
            }
        }
    }

    fn poll_all(&mut self) -> Result<Polled, GatherError> {
        // Before the look at the lanes: what was sent before the last of them went is seen by it.
        let gone = self.makers.as_ref().map(|makers| makers.are_gone());
        self.take_fresh();
        let count = self.readers.len();
        // A lane that was never taken, or that its sender left, may
        // get one as long as somebody can make one.
        let (may_come, mut alive, mut last) = (gone != Some(true), gone == Some(false), None);
        let first = self.turn.min(count);
        for lane in (first..count).chain(0..first) {
            let Some(reader) = &mut self.readers[lane] else { continue };
            if reader.is_idle() {
                alive |= may_come;
                continue;
            }
            match reader.poll_once() {
                Ok(Some(found)) => {
                    // The next one's turn, also if this message is only looked at.
                    self.turn = lane + 1;
                    self.find_busy(lane);
                    return Ok(Polled::Found((lane, found)));
                }
                Ok(None) => alive |= may_come,
                Err((error, true)) if error != RecvError::Closed => {
                    return Err(GatherError { lane: Some(lane), error });
                }
                Err((error, _)) => last = Some(GatherError { lane: Some(lane), error }),
            }
        }
        match last {
            // Nobody can come, for there is no lane to come to.
            None if !alive => Ok(Polled::Over(GatherError { lane: None, error: RecvError::Closed })),
            Some(error) if !alive => Ok(Polled::Over(error)),
            _ => Ok(Polled::Nothing),
        }
    }

    fn find(&mut self, deadline: Option<Deadline>) -> Result<Option<(usize, Found)>, GatherError> {
        loop {
            if let Some(found) = self.poll()? {
                return Ok(Some(found));
            }
            let Self { readers, bells, way, makers, .. } = self;
            readers.iter().flatten().for_each(|reader| reader.want(1));
            let ready = || has_news(readers, makers.as_deref());
            let woken = if let [(state, listener)] = &mut bells[..] {
                way.wait(&mut [WaitEntry { state, listener }], ready, deadline)?
            } else {
                let mut entries: Vec<_> =
                    bells.iter_mut().map(|(state, listener)| WaitEntry { state, listener }).collect();
                way.wait(&mut entries, ready, deadline)?
            };
            // A hostile sender can wake us for ever.
            if !woken || deadline.is_some_and(|deadline| deadline.passed()) {
                return self.poll();
            }
        }
    }

    /// Files of which one becomes readable after [`listen`](Self::listen) returned false, when
    /// there is something to receive: one for each bell. See
    /// [`Receiver::file`](super::Receiver::file).
    ///
    /// # Errors
    /// [`WaitError::NoWaiterSlot`].
    pub fn files(&mut self) -> Result<Vec<BorrowedFd<'_>>, WaitError> {
        self.take_slots()?;
        Ok(self
            .bells
            .iter()
            .filter_map(|(state, listener)| Some(state.eventfd(listener.eventfd_slot()?.1)?.as_fd()))
            .collect())
    }

    /// As `End::check_ours`, of each lane.
    pub(crate) fn check_ours(&self) -> Result<(), WaitError> {
        // One system call for all lanes.
        let current = Process::current();
        let ours = self.readers.iter().flatten().all(|reader| reader.is_of(current));
        if ours { Ok(()) } else { Err(WaitError::Forked) }
    }

    fn take_slots(&mut self) -> Result<(), WaitError> {
        self.check_ours()?;
        self.bells.iter_mut().try_for_each(|(_, listener)| listener.slots().take_eventfd().map(drop))
    }

    /// Before going back to the event loop: is there something to receive after all? See
    /// [`Receiver::listen`](super::Receiver::listen).
    ///
    /// # Errors
    /// [`WaitError::NoWaiterSlot`], [`WaitError::Os`].
    pub fn listen(&mut self) -> Result<bool, WaitError> {
        let ready = self.arm()?;
        if ready
            && let Some((state, listener)) = self.bells.first()
            && let Some((_, index)) = listener.eventfd_slot()
        {
            // For one who goes back to the event loop all the same.
            state.put_token(index);
        }
        Ok(ready)
    }

    /// As `listen`, for one who comes back by itself after true.
    pub(crate) fn arm(&mut self) -> Result<bool, WaitError> {
        if self.bells.is_empty() {
            // That there is no lane.
            return Ok(true);
        }
        self.take_slots()?;
        for _ in 0..MOST_TURNS {
            if !self.listen_at_all()? {
                return Ok(false);
            }
            if self.readers.iter_mut().flatten().any(RingReader::settle_once)
                || self.makers.as_deref().is_some_and(Makers::have_news)
            {
                break;
            }
        }
        Ok(true)
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn listeners(&mut self) -> impl Iterator<Item = &mut Listener> {
        self.bells.iter_mut().map(|(_, listener)| listener)
    }

    fn listen_at_all(&mut self) -> Result<bool, WaitError> {
        let Self { readers, bells, makers, .. } = self;
        readers.iter_mut().flatten().for_each(RingReader::put_back);
        readers.iter().flatten().for_each(|reader| reader.want(1));
        for (state, listener) in bells {
            let Some((slot, index)) = listener.eventfd_slot() else { continue };
            let mut waiter = [Waiter::new(&state.record().wake, slot)];
            let ready = || has_news(readers, makers.as_deref());
            if listen(&mut waiter, &mut Token { state, index }, ready)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// For the `ready` of a wait: is there anything to be had, or told, that was not told?
fn has_news(readers: &[Option<RingReader>], makers: Option<&Makers>) -> bool {
    readers.iter().flatten().any(RingReader::has_news) || makers.is_some_and(Makers::have_news)
}

impl<T: Trust, W: Wait> Source for Gather<T, W> {
    fn look(&mut self) -> bool {
        self.take_fresh();
        // All are looked at: each sender is told of the room there is.
        let news =
            self.readers.iter_mut().flatten().filter_map(|reader| reader.look_once().then_some(())).count();
        // That there is no sender left, or no lane, is told again and again.
        news > 0 || self.is_over()
    }

    fn parts<'a>(&'a mut self, parts: &mut Parts<'a>) {
        let Self { readers, bells, makers, .. } = self;
        let (readers, makers) = (&*readers, makers.as_deref());
        readers.iter().flatten().for_each(|reader| reader.want(1));
        for (state, listener) in bells {
            parts.entries.push(WaitEntry { state, listener });
        }
        parts.ready.push(Box::new(move || has_news(readers, makers)));
    }
}
