// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving end of a broadcast.

use super::error::JoinError;
use super::log::LogMemory;
use crate::channel::lane::{Departure, End, Lane, Partner};
use crate::channel::receiver::MOST_TURNS;
use crate::channel::{AttachError, RecvError};
use crate::deadline::Deadline;
use crate::error::WaitError;
use crate::peer::{Trust, Untrusted};
use crate::rendezvous::{AttachContext, Connection, most_memory};
use crate::select::{Parts, Source};
use crate::wait::{Adaptive, Listener, Token, Wait, WaitEntry};
use doorbell_core::channel::arithmetic::{may_hold_back, passes};
use doorbell_core::channel::broadcast::{self, Here, Next};
use doorbell_core::channel::layout::Control;
use doorbell_core::fault;
use doorbell_core::violation::PeerViolation;
use doorbell_core::wake::{Waiter, listen};
use rustix::fd::BorrowedFd;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;

/// One subscription to a [`Publisher`](super::Publisher), whose log is mapped read-only. Messages
/// are copied out of it, or read where they lie ([`recv_batch`](Self::recv_batch)). In an event
/// loop, use [`file`](Self::file) and [`listen`](Self::listen).
#[derive(Debug)]
pub struct Subscriber<T: Trust = Untrusted, W: Wait = Adaptive> {
    log: LogMemory,
    index: broadcast::Subscriber,
    /// The cursor the publisher knows of.
    released: u64,
    end: End,
    publisher: Partner,
    way: W,
    listener: Listener,
    violation: Option<PeerViolation>,
    /// Were we told that we are too slow, and have missed what came then?
    dropped: bool,
    trust: PhantomData<T>,
    /// Last: with it goes the hold, by which the publisher knows that we live.
    lane: Lane,
}

impl<T: Trust> Subscriber<T> {
    /// Subscribes at the peer of `connection`, which calls
    /// [`Publisher::admit`](super::Publisher::admit) with the same `lane` of the segment they
    /// share. The connection may be dropped.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join(connection: &Connection<T>, lane: u32) -> Result<Self, JoinError> {
        Self::join_within(connection, lane, most_memory::<T>())
    }
}

impl<T: Trust, W: Wait + Default> Subscriber<T, W> {
    /// As [`join`](Subscriber::join), with a chosen [way of waiting](crate::wait), and a log of up
    /// to `most` bytes instead of the [`MOST_MEMORY`](crate::rendezvous::MOST_MEMORY) that are
    /// taken from a publisher who is not trusted.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join_within(connection: &Connection<T>, lane: u32, most: u64) -> Result<Self, JoinError> {
        let (admitted, cursor, published, file) = connection.receive_log()?;
        if admitted != u64::from(lane) {
            return Err(JoinError::OtherLane { asked: lane, admitted });
        }
        let attach_context = connection.attach_context().map_err(AttachError::from)?;
        Self::on(attach_context, lane, LogMemory::from_peer(file, most, T::TRUSTED)?, cursor, published)
    }

    pub(super) fn on(
        attach_context: AttachContext<'_>,
        number: u32,
        log: LogMemory,
        cursor: u64,
        published: u64,
    ) -> Result<Self, JoinError> {
        let index =
            broadcast::Subscriber::new(log.capacity(), cursor, published).map_err(JoinError::Violation)?;
        let lane = Lane::new(attach_context, number)?;
        let end = End::take(&lane, &lane.control().receiver, number)?;
        let listener = Listener::new(&lane.message_state, W::NAME);
        let publisher = Partner::new(&lane, &lane.room_state);
        Ok(Self {
            log,
            index,
            released: cursor,
            lane,
            end,
            publisher,
            way: W::default(),
            listener,
            violation: None,
            dropped: false,
            trust: PhantomData,
        })
    }
}

impl<T: Trust, W: Wait> Subscriber<T, W> {
    /// Whether a signal that this thread handles ends a wait
    /// ([`WaitError::Interrupted`](crate::WaitError::Interrupted)).
    /// It does not if this is not called.
    pub fn set_interruptible(&mut self, interruptible: bool) {
        self.listener.set_interruptible(interruptible);
    }

    /// Receives the next message into `to`, if there is one. Returns how many messages were missed
    /// directly before it. What was in `to` is lost also if there is none: one may be
    /// overwritten while it is copied.
    ///
    /// # Errors
    /// [`RecvError`].
    pub fn try_recv_into(&mut self, to: &mut Vec<u8>) -> Result<Option<u64>, RecvError> {
        let lost = self.try_next(&mut |subscriber: &mut Self| subscriber.copy(to))?;
        if lost.is_some() {
            self.release_much();
        }
        Ok(lost)
    }

    /// What `next` finds, if there is something, or the end of the publisher.
    pub(super) fn try_next<R>(
        &mut self,
        next: &mut impl FnMut(&mut Self) -> Result<Option<R>, RecvError>,
    ) -> Result<Option<R>, RecvError> {
        if self.dropped {
            return Err(RecvError::Dropped);
        }
        // A copy in a forked child would give room back that its parent has not read.
        if self.publisher.is_news() && !self.end.is_ours() {
            return Err(RecvError::Forked);
        }
        if let Some(found) = next(self)? {
            return Ok(Some(found));
        }
        if self.index.cursor() != self.released {
            self.release();
        }
        if !self.publisher.may_have_gone(&self.lane.control().sender) {
            return Ok(None);
        }
        let ended = self.check_publisher();
        if ended == Err(RecvError::Dropped) {
            return Err(RecvError::Dropped);
        }
        // It may have published something between our look and its end.
        match next(self)? {
            None => ended.map(|()| None),
            found => Ok(found),
        }
    }

    /// Receives the next message into `to`, whose content it replaces. Waits while there is none.
    /// Returns how many messages were missed directly before it.
    ///
    /// # Errors
    /// [`RecvError`].
    pub fn recv_into(&mut self, to: &mut Vec<u8>) -> Result<u64, RecvError> {
        loop {
            // Only `Null` gives up without a deadline.
            if let Some(lost) = self.recv_into_deadline(to, None)? {
                return Ok(lost);
            }
        }
    }

    /// As [`recv_into`](Self::recv_into), but waits no longer than until `deadline`; for ever if
    /// there is none. `None` if no message came.
    ///
    /// # Errors
    /// [`RecvError`].
    pub fn recv_into_deadline(
        &mut self,
        to: &mut Vec<u8>,
        deadline: Option<Deadline>,
    ) -> Result<Option<u64>, RecvError> {
        let lost = self.next_until(deadline, |subscriber: &mut Self| subscriber.copy(to))?;
        if lost.is_some() {
            self.release_much();
        }
        Ok(lost)
    }

    /// As `try_next`, but waits until `deadline`; for ever if there is none.
    pub(super) fn next_until<R>(
        &mut self,
        deadline: Option<Deadline>,
        mut next: impl FnMut(&mut Self) -> Result<Option<R>, RecvError>,
    ) -> Result<Option<R>, RecvError> {
        loop {
            if let Some(found) = self.try_next(&mut next)? {
                return Ok(Some(found));
            }
            let Self { log, index, lane, publisher, way, listener, .. } = self;
            let control = lane.control();
            fault::point();
            // Before the waiter arms: the publisher reads it after its fence.
            control.message_wanted.store(index.cursor(), Ordering::Relaxed);
            let state = &lane.message_state;
            let ready = || index.has_next(log) || publisher.may_have_gone(&control.sender);
            let woken = way.wait(&mut [WaitEntry { state, listener }], ready, deadline)?;
            // A hostile publisher can wake us for ever.
            if !woken || deadline.is_some_and(|deadline| deadline.passed()) {
                return self.try_next(&mut next);
            }
        }
    }

    /// A file that becomes readable after [`listen`](Self::listen) returned false, when there is
    /// something to receive. As [`Receiver::file`](crate::channel::Receiver::file).
    ///
    /// # Errors
    /// [`WaitError::NoWaiterSlot`].
    pub fn file(&mut self) -> Result<BorrowedFd<'_>, WaitError> {
        self.end.check_ours()?;
        self.listener.file()
    }

    /// Before going back to the event loop: is there something to receive after all? Makes the file
    /// unreadable if not, until there is. As
    /// [`Receiver::listen`](crate::channel::Receiver::listen).
    ///
    /// ```
    /// use doorbell::channel::broadcast::{Publisher, Subscriber, WhenSlow};
    /// use doorbell::peer::Trusted;
    /// use rustix::event::{PollFd, PollFlags, poll};
    ///
    /// let mut publisher: Publisher = Publisher::new(4096)?;
    /// let mut subscriber: Subscriber<Trusted> = publisher.subscribe(WhenSlow::Gap)?;
    /// assert!(!subscriber.listen()?);
    /// publisher.publish(b"wake up")?;
    /// poll(&mut [PollFd::new(&subscriber.file()?, PollFlags::IN)], None)?;
    /// assert_eq!(subscriber.try_recv_into(&mut Vec::new())?, Some(0), "none was missed");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`WaitError::NoWaiterSlot`], [`WaitError::Os`].
    pub fn listen(&mut self) -> Result<bool, WaitError> {
        let ready = self.arm()?;
        let (_, index) = self.listener.slots().take_eventfd()?;
        if ready {
            // For one who goes back to the event loop all the same.
            self.lane.message_state.put_token(index);
        }
        Ok(ready)
    }

    /// As `listen`, for one who comes back by itself after true.
    pub(crate) fn arm(&mut self) -> Result<bool, WaitError> {
        self.end.check_ours()?;
        let (slot, index) = self.listener.slots().take_eventfd()?;
        for _ in 0..MOST_TURNS {
            let Self { log, index: subscription, lane, publisher, dropped, violation, .. } = &*self;
            let (state, control) = (&*lane.message_state, lane.control());
            fault::point();
            // Before the waiter arms: the publisher reads it after its fence.
            control.message_wanted.store(subscription.cursor(), Ordering::Relaxed);
            let ready = || {
                *dropped
                    || violation.is_some()
                    || subscription.has_next(log)
                    || publisher.may_have_gone(&control.sender)
            };
            let mut waiter = [Waiter::new(&state.record().wake, slot)];
            if !listen(&mut waiter, &mut Token { state, index }, ready)? {
                return Ok(false);
            }
            if self.settle() {
                break;
            }
        }
        Ok(true)
    }

    /// As `End::check_ours`.
    #[cfg(feature = "tokio")]
    pub(crate) fn check_ours(&self) -> Result<(), WaitError> {
        self.end.check_ours()
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn listener(&mut self) -> &mut Listener {
        &mut self.listener
    }

    /// Is there really something to receive, or an end to be told? That a publisher has come looks
    /// the same to a waiter until this was called.
    fn settle(&mut self) -> bool {
        let word = &self.lane.control().sender;
        self.dropped
            || self.violation.is_some()
            || self.index.has_next(&self.log)
            || self.publisher.may_have_gone(word) && self.publisher.departed(word, &self.end).is_some()
    }

    /// The next message, where it lies. Those before it are not held any more.
    pub(super) fn find(&mut self) -> Result<Option<Here>, RecvError> {
        self.release_much();
        let (log, mut next) = self.in_place();
        let found = next.next(log);
        match (found, self.violation) {
            (None, Some(violation)) => Err(violation.into()),
            (None, None) if self.dropped => Err(RecvError::Dropped),
            (found, _) => Ok(found),
        }
    }

    pub(super) fn in_place(&mut self) -> (&LogMemory, NextInPlace<'_>) {
        let Self { log, index, lane, violation, dropped, .. } = self;
        (log, NextInPlace { index, control: lane.control(), violation, dropped })
    }

    /// Tells the publisher how far we are, if that is far.
    fn release_much(&mut self) {
        if self.index.cursor().wrapping_sub(self.released) >= may_hold_back(self.log.capacity().get()) {
            self.release();
        }
    }

    /// The next message into `to`.
    fn copy(&mut self, to: &mut Vec<u8>) -> Result<Option<u64>, RecvError> {
        if let Some(violation) = self.violation {
            return Err(violation.into());
        }
        let log = &self.log;
        let mut no_memory = None;
        let next = self.index.next(log, |at, length| {
            // At most the longest message of a log that is mapped.
            let length = length as usize;
            no_memory = to.try_reserve(length.saturating_sub(to.len())).err().map(|_| length);
            if no_memory.is_none() {
                to.resize(length, 0);
                log.read(at, to);
            }
        });
        match next {
            Ok(Next::Nothing) => Ok(None),
            Ok(Next::Message { lost }) => {
                self.dropped = is_dropped(lost, self.lane.control());
                match no_memory {
                    _ if self.dropped => Err(RecvError::Dropped),
                    Some(length) => Err(RecvError::NoMemory { length }),
                    None => Ok(Some(lost)),
                }
            }
            Err(violation) => {
                self.violation = Some(violation);
                Err(violation.into())
            }
        }
    }

    /// Tells the publisher how far we are.
    fn release(&mut self) {
        // What a forked child has read of its copy is not what its parent has.
        if !self.end.is_ours_at_once() {
            return;
        }
        let (before, now) = (self.released, self.index.cursor());
        let control = self.lane.control();
        fault::point();
        // Release: our reads come before what the publisher writes over them.
        control.released.store(now, Ordering::Release);
        self.released = now;
        self.lane.room_state.announce_if(|| passes(control.room_wanted.load(Ordering::Relaxed), before, now));
    }

    #[cold]
    fn check_publisher(&mut self) -> Result<(), RecvError> {
        let control = self.lane.control();
        let departure = self.publisher.departed(&control.sender, &self.end);
        let dropped = control.dropped.load(Ordering::Relaxed) != 0;
        match departure {
            None => Ok(()),
            Some(Departure::Forked) => Err(RecvError::Forked),
            Some(Departure::Left) if dropped => Err(RecvError::Dropped),
            Some(Departure::Left) => Err(RecvError::Closed),
            Some(Departure::Gone(peer)) => Err(RecvError::PeerGone(peer)),
        }
    }
}

/// Finds messages one after another, and releases none.
#[derive(Debug)]
pub(super) struct NextInPlace<'a> {
    index: &'a mut broadcast::Subscriber,
    control: &'a Control,
    violation: &'a mut Option<PeerViolation>,
    dropped: &'a mut bool,
}

impl NextInPlace<'_> {
    /// The next. What is wrong is told by the next look.
    pub(super) fn next(&mut self, log: &LogMemory) -> Option<Here> {
        if self.violation.is_some() || *self.dropped {
            return None;
        }
        match self.index.next_in_place(log) {
            Ok(found) => {
                *self.dropped = found.is_some_and(|here| is_dropped(here.lost(), self.control));
                found.filter(|_| !*self.dropped)
            }
            Err(violation) => {
                *self.violation = Some(violation);
                None
            }
        }
    }
}

/// Did we miss messages because the publisher ended the subscription? It says so before it writes
/// over what we had not read.
fn is_dropped(lost: u64, control: &Control) -> bool {
    lost > 0 && control.dropped.load(Ordering::Relaxed) != 0
}

impl<T: Trust, W: Wait> Source for Subscriber<T, W> {
    fn look(&mut self) -> bool {
        let ready = self.settle();
        if !ready && self.index.cursor() != self.released {
            self.release();
        }
        ready
    }

    fn parts<'a>(&'a mut self, parts: &mut Parts<'a>) {
        let Self { log, index, lane, publisher, listener, .. } = self;
        let (log, index, publisher, control) = (&*log, &*index, &*publisher, lane.control());
        fault::point();
        // Before the waiter arms: the publisher reads it after its fence.
        control.message_wanted.store(index.cursor(), Ordering::Relaxed);
        parts.add(WaitEntry { state: &lane.message_state, listener }, || {
            index.has_next(log) || publisher.may_have_gone(&control.sender)
        });
    }
}

impl<T: Trust, W: Wait> Drop for Subscriber<T, W> {
    fn drop(&mut self) {
        self.end.leave(&self.lane.control().receiver);
        self.lane.room_state.announce();
    }
}
