// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving end.

use super::error::RecvError;
use super::message::Message;
use super::ring_reader::RingReader;
use crate::attach_error::AttachError;
use crate::deadline::Deadline;
use crate::error::WaitError;
use crate::peer::{Trust, Trusted, Untrusted};
use crate::rendezvous::{AttachContext, Connection, Segment};
use crate::select::{Parts, Source};
use crate::wait::{Adaptive, Listener, Token, Wait, WaitEntry};
use doorbell_core::channel::lane::Found;
use doorbell_core::wake::{Waiter, listen};
use rustix::fd::BorrowedFd;
use std::marker::PhantomData;
use std::time::Duration;

/// The receiving end of a lane.
///
/// | to receive | use |
/// |---|---|
/// | a [`Message`] that still lies in the ring | [`recv`](Self::recv), [`recv_timeout`](Self::recv_timeout), [`recv_deadline`](Self::recv_deadline), [`try_recv`](Self::try_recv) |
/// | a copy in memory that is used again and again | [`recv_into`](Self::recv_into) |
/// | several at once, each where it lies | [`recv_batch`](Self::recv_batch) |
/// | in an event loop | [`file`](Self::file) and [`listen`](Self::listen) |
/// | not for every message, but for enough bytes | [`wait_for_bytes`](Self::wait_for_bytes) |
///
/// # What happens when …
///
/// **… the sender leaves or dies?** All that it committed is received; then every call returns
/// [`RecvError::Closed`] or [`RecvError::PeerGone`], until another sender attaches.
///
/// **… this receiver is dropped?** The sender is told at its next send. Messages it had not
/// received stay for the next receiver.
///
/// **… it takes its time?** The sender's ring fills. A receiver tells the sender of the room it
/// makes when it has received an eighth of the ring, and when it finds no message.
#[derive(Debug)]
pub struct Receiver<T: Trust = Untrusted, W: Wait = Adaptive> {
    way: W,
    listener: Listener,
    trust: PhantomData<T>,
    /// Last: with it goes the hold, by which the other side knows that we live.
    pub(super) reader: RingReader,
}

impl<T: Trust> Receiver<T> {
    /// Takes the receiving end of lane `lane` of the segment shared with the peer of `connection`.
    ///
    /// The connection may be dropped: the end keeps the connection.
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn attach(connection: &Connection<T>, lane: u32) -> Result<Self, AttachError> {
        Self::attach_waiting_by(connection, lane)
    }
}

impl<T: Trust, W: Wait + Default> Receiver<T, W> {
    /// As [`attach`](Self::attach), with a chosen [way of waiting](crate::wait).
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn attach_waiting_by(connection: &Connection<T>, lane: u32) -> Result<Self, AttachError> {
        Self::on(connection.attach_context()?, lane)
    }

    fn on(attach_context: AttachContext<'_>, lane: u32) -> Result<Self, AttachError> {
        if !attach_context.segment.trusts::<T>() {
            return Err(AttachError::Untrusted);
        }
        let lanes = attach_context.segment.lanes().ok_or(AttachError::NoChannels)?;
        let (lanes, receivers) = (lanes.lanes(), lanes.receivers());
        if lane < lanes && lanes != receivers {
            return Err(AttachError::Shared { lanes, receivers });
        }
        let reader = RingReader::on(attach_context, lane)?;
        let listener = Listener::new(&reader.lane.message_state, W::NAME);
        Ok(Self { reader, way: W::default(), listener, trust: PhantomData })
    }
}

impl Receiver<Trusted> {
    /// As [`attach`](Self::attach), on a segment whose other users are all trusted: threads of this
    /// process, forked children, those who joined by name.
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn at(segment: &Segment, lane: u32) -> Result<Self, AttachError> {
        Self::at_waiting_by(segment, lane)
    }
}

impl<W: Wait + Default> Receiver<Trusted, W> {
    /// As [`at`](Self::at), with a chosen [way of waiting](crate::wait).
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn at_waiting_by(segment: &Segment, lane: u32) -> Result<Self, AttachError> {
        Self::on(segment.attach_context()?, lane)
    }
}

impl<T: Trust, W: Wait> Receiver<T, W> {
    /// The next message, if there is one.
    ///
    /// # Errors
    /// [`RecvError`].
    #[inline(always)]
    pub fn try_recv(&mut self) -> Result<Option<Message<'_, T>>, RecvError> {
        let found = self.reader.poll_alone()?;
        Ok(found.map(|found| Message::new(&mut self.reader, found)))
    }

    /// As `try_recv`, for one who asks `message` for it when it has been found.
    #[cfg(feature = "tokio")]
    pub(crate) fn poll(&mut self) -> Result<Option<Found>, RecvError> {
        self.reader.poll_alone()
    }

    /// As `poll`, but `Some(None)` when the sender has left, or has gone and that was told.
    #[cfg(feature = "stream")]
    pub(crate) fn poll_to_the_end(&mut self) -> Result<Option<Option<Found>>, RecvError> {
        match self.reader.poll_once() {
            Ok(found) => Ok(found.map(Some)),
            Err((RecvError::Closed, _) | (_, false)) => Ok(Some(None)),
            Err((error, true)) => Err(error),
        }
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn message(&mut self, found: Found) -> Message<'_, T> {
        Message::new(&mut self.reader, found)
    }

    /// As `End::check_ours`.
    #[cfg(feature = "tokio")]
    pub(crate) fn check_ours(&self) -> Result<(), WaitError> {
        self.reader.check_ours()
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn listener(&mut self) -> &mut Listener {
        &mut self.listener
    }

    /// The next message. Waits while there is none.
    ///
    /// # Errors
    /// [`RecvError`].
    #[inline(always)]
    pub fn recv(&mut self) -> Result<Message<'_, T>, RecvError> {
        let found = match self.reader.poll_now() {
            Some(found) => found,
            None => self.find_at_leisure()?,
        };
        Ok(Message::new(&mut self.reader, found))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn find_at_leisure(&mut self) -> Result<Found, RecvError> {
        loop {
            // Only `Null` gives up without a deadline.
            if let Some(found) = self.find(None)? {
                return Ok(found);
            }
        }
    }

    /// The next message. Waits up to `timeout` while there is none. `None` if none came.
    ///
    /// # Errors
    /// [`RecvError`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Option<Message<'_, T>>, RecvError> {
        let found = match self.reader.poll_alone()? {
            Some(found) => Some(found),
            None => self.find(Some(Deadline::after(timeout)))?,
        };
        Ok(found.map(|found| Message::new(&mut self.reader, found)))
    }

    /// The next message. Waits until `deadline` while there is none; for ever if there is none.
    /// `None` if no message came.
    ///
    /// # Errors
    /// [`RecvError`].
    pub fn recv_deadline(&mut self, deadline: Option<Deadline>) -> Result<Option<Message<'_, T>>, RecvError> {
        let found = self.find(deadline)?;
        Ok(found.map(|found| Message::new(&mut self.reader, found)))
    }

    /// Receives the next message into `to`, whose content it replaces. Waits while there is none.
    ///
    /// # Errors
    /// [`RecvError`].
    #[inline]
    pub fn recv_into(&mut self, to: &mut Vec<u8>) -> Result<(), RecvError> {
        self.recv()?.try_take_into(to)
    }

    /// Waits until at least `bytes` bytes of records are there (a message's length, rounded up to
    /// eight, and eight more), or until `deadline`. At most a quarter of the ring can be waited
    /// for; more is taken for that. What the sender passes by at the end of the ring, where its
    /// next message does not fit, counts too: after true there may be fewer messages than that,
    /// or none. False if they are not there, because it is too late or the sender has gone.
    ///
    /// The sender makes no system call for messages before that many are there. What is there at
    /// the deadline is received as usual.
    ///
    /// # Errors
    /// [`RecvError::Wait`]. What happened to the sender is told by the next receive.
    pub fn wait_for_bytes(&mut self, bytes: u64, deadline: Deadline) -> Result<bool, RecvError> {
        let bytes = bytes.min(self.reader.most_bytes());
        self.reader.put_back();
        loop {
            match self.reader.has_bytes(bytes) {
                Some(true) => return Ok(true),
                None => return Ok(false),
                Some(false) => {}
            }
            // What is held back may be the room that the sender waits for, while we wait for the sender.
            self.reader.give_back();
            if deadline.passed() {
                return Ok(false);
            }
            self.wait(bytes, Some(deadline))?;
        }
    }

    #[inline]
    pub(super) fn find(&mut self, deadline: Option<Deadline>) -> Result<Option<Found>, RecvError> {
        loop {
            if let Some(found) = self.reader.poll_alone()? {
                return Ok(Some(found));
            }
            if !self.wait(1, deadline)? {
                return self.reader.poll_alone();
            }
            // A hostile sender can wake us for ever, and be ready for ever without a message.
            if let Some(deadline) = deadline {
                let found = self.reader.poll_alone()?;
                if found.is_some() || deadline.passed() {
                    return Ok(found);
                }
            }
        }
    }

    #[inline]
    fn wait(&mut self, bytes: u64, deadline: Option<Deadline>) -> Result<bool, WaitError> {
        let Self { reader, way, listener, .. } = self;
        reader.want(bytes);
        let state = &reader.lane.message_state;
        way.wait(&mut [WaitEntry { state, listener }], || reader.is_ready(bytes), deadline)
    }

    /// A file that becomes readable after [`listen`](Self::listen) returned false, when there is
    /// something to receive. For epoll, poll, mio, tokio or asyncio, level- or edge-triggered.
    ///
    /// Takes a waiter slot for eventfds at the channel's bell, for good. Never read from the file
    /// or write to it yourself.
    ///
    /// # Errors
    /// [`WaitError::NoWaiterSlot`].
    pub fn file(&mut self) -> Result<BorrowedFd<'_>, WaitError> {
        self.reader.check_ours()?;
        self.listener.file()
    }

    /// Before going back to the event loop: is there something to receive after all? Makes the file
    /// unreadable if not, until there is.
    ///
    /// Call it when [`try_recv`](Self::try_recv) found nothing, and go back to the event loop only
    /// after `false`. A caller that stops receiving earlier need not call it: then the file
    /// stays as it is, and it must come back by itself.
    ///
    /// ```
    /// use rustix::event::{PollFd, PollFlags, poll};
    ///
    /// let (mut sender, mut receiver) = doorbell::channel::pair(4096)?;
    /// assert!(!receiver.listen()?);
    /// sender.send(b"wake up")?;
    /// poll(&mut [PollFd::new(&receiver.file()?, PollFlags::IN)], None)?;
    /// assert_eq!(receiver.try_recv()?.expect("readable").to_vec(), b"wake up");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The same in a runtime, here smol's:
    ///
    /// ```
    /// use async_io::{Async, block_on};
    ///
    /// let (mut sender, mut receiver) = doorbell::channel::pair(4096)?;
    /// std::thread::spawn(move || sender.send(b"wake up"));
    /// let file = Async::new(receiver.file()?.try_clone_to_owned()?)?;
    /// let message = block_on(async {
    ///     loop {
    ///         if let Some(message) = receiver.try_recv()? {
    ///             break Ok::<_, Box<dyn std::error::Error>>(message.into_vec());
    ///         }
    ///         if !receiver.listen()? {
    ///             file.readable().await?;
    ///         }
    ///     }
    /// })?;
    /// assert_eq!(message, b"wake up");
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
            self.reader.lane.message_state.put_token(index);
        }
        Ok(ready)
    }

    /// As `listen`, for one who comes back by itself after true.
    pub(crate) fn arm(&mut self) -> Result<bool, WaitError> {
        self.reader.check_ours()?;
        let (slot, index) = self.listener.slots().take_eventfd()?;
        self.reader.put_back();
        for _ in 0..MOST_TURNS {
            self.reader.want(1);
            let state = &*self.reader.lane.message_state;
            let mut waiter = [Waiter::new(&state.record().wake, slot)];
            if !listen(&mut waiter, &mut Token { state, index }, || self.reader.is_ready(1))? {
                return Ok(false);
            }
            if self.reader.settle() {
                break;
            }
        }
        Ok(true)
    }

    /// How many messages the sender has dropped because there was no room, as it says.
    pub fn dropped(&self) -> u64 {
        self.reader.dropped()
    }

    /// Whether a signal that this thread handles ends a wait ([`WaitError::Interrupted`]). It does
    /// not if this is not called.
    pub fn set_interruptible(&mut self, interruptible: bool) {
        self.listener.set_interruptible(interruptible);
    }

    /// This receiver's waits so far.
    pub fn counts(&self) -> crate::counters::Counts {
        self.listener.counters().read()
    }
}

impl<T: Trust, W: Wait> Source for Receiver<T, W> {
    fn look(&mut self) -> bool {
        // Tells the sender of the room there is.
        !matches!(self.reader.poll(), Ok(None))
    }

    fn parts<'a>(&'a mut self, parts: &mut Parts<'a>) {
        let Self { reader, listener, .. } = self;
        let reader = &*reader;
        reader.want(1);
        parts.add(WaitEntry { state: &reader.lane.message_state, listener }, || reader.is_ready(1));
    }
}

/// Senders that come and go while we listen; only a hostile one does so more often.
pub(super) const MOST_TURNS: u32 = 4;
