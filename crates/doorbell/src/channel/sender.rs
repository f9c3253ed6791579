// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sending end.

use super::error::SendError;
use super::fence::Fence;
use super::lane::{Departure, End, Lane, Partner};
use super::makers::Alive;
use super::receiver::MOST_TURNS;
use super::slot::Slot;
use crate::attach_error::AttachError;
use crate::cpu::cpu_mark;
use crate::deadline::Deadline;
use crate::error::WaitError;
use crate::mapping::Scope;
use crate::peer::{Trust, Trusted, Untrusted};
use crate::rendezvous::{AttachContext, Connection, Segment};
use crate::select::{Parts, Source};
use crate::wait::{Adaptive, Listener, Token, Wait, WaitEntry};
use doorbell_core::channel::lane::{self, depends_on_cpus};
use doorbell_core::channel::layout::Attachment;
use doorbell_core::fault;
use doorbell_core::violation::PeerViolation;
use doorbell_core::wake::{Waiter, listen};
use rustix::fd::BorrowedFd;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The sending end of a lane.
///
/// | to send | use |
/// |---|---|
/// | bytes that lie somewhere | [`send`](Self::send) |
/// | bytes that are made for it | [`reserve`](Self::reserve), write into the [`Slot`], [`commit`](Slot::commit) |
/// | many messages at once, with one wake-up | [`batch`](Self::batch) |
///
/// | when there is no room | use |
/// |---|---|
/// | wait | [`send`](Self::send), [`send_timeout`](Self::send_timeout), [`send_deadline`](Self::send_deadline) |
/// | fail | [`try_send`](Self::try_send) |
/// | wait in an event loop | [`file`](Self::file) and [`listen`](Self::listen) |
/// | drop the message, and count | [`send_or_drop`](Self::send_or_drop) |
///
/// A message may be empty. The longest takes three eighths of the ring ([`longest`](Self::longest)).
///
/// # What happens when …
///
/// **… nobody receives yet?** Messages wait in the ring. When it is full, a deadline ends with [`SendError::NoReceiver`]; without
/// one a send between threads says so at once, and one between processes waits for the process to come
/// ([`has_receiver`](Self::has_receiver)).
///
/// **… the receiver leaves or dies?** The next send returns [`SendError::Closed`] or [`SendError::PeerGone`]; so does a
/// send that waits for room. When another receiver attaches, sending works again.
///
/// **… this sender is dropped?** The receiver gets all messages and then [`RecvError::Closed`](super::RecvError::Closed).
///
/// **… a process forks?** The end stays the parent's: both would write the same bytes. Dropping the child's copy does
/// nothing. Take a child's ends in the child.
#[derive(Debug)]
pub struct Sender<T: Trust = Untrusted, W: Wait = Adaptive> {
    /// How far we have sent, and how far the receiver is known to have released. In memory of our own: what others write there is
    /// taken over once it was checked.
    pub(super) index: lane::Sender,
    /// Left out only while the receiver runs one on our processor before it sleeps; taken back before this end is left.
    fence: Fence,
    /// The word at the lane that says we are there, from `on` to the drop, in the process that took it.
    end: End,
    /// As we know the receiver. Looked at before each message.
    receiver: Partner,
    way: W,
    /// Where we wait for room. Holds a waiter slot from the first wait on that needs one.
    listener: Listener,
    /// Told again by each call once the receiver has lied: from then on nothing of it is believed.
    violation: Option<PeerViolation>,
    trust: PhantomData<T>,
    /// Of one of many: who else can make or be one.
    kept: Option<Arc<Alive>>,
    /// Last: with it goes the hold, by which the other side knows that we live.
    pub(super) lane: Lane,
}

impl<T: Trust> Sender<T> {
    /// Takes the sending end of lane `lane` of the segment shared with the peer of `connection`.
    ///
    /// The connection may be dropped: the end keeps the connection.
    ///
    /// ```
    /// use doorbell::channel::{Lanes, Receiver, Sender};
    /// use doorbell::rendezvous::{Connection, Offer, Segment, socket};
    /// use std::sync::Arc;
    ///
    /// let (ours, theirs) = socket::pair()?;
    /// // The other process.
    /// let other = std::thread::spawn(move || {
    ///     let connection: Connection = socket::join_over(theirs).unwrap();
    ///     let mut receiver: Receiver = Receiver::attach(&connection, 0).unwrap();
    ///     receiver.recv().unwrap().to_vec()
    /// });
    /// let segment = Arc::new(Segment::new(&Offer::of_lanes(Lanes::new(1, 1, 4096).unwrap()))?);
    /// let connection: Connection = socket::host_over(ours, &segment)?;
    /// let mut sender: Sender = Sender::attach(&connection, 0)?;
    /// sender.send(b"hello")?;
    /// assert_eq!(other.join().unwrap(), b"hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn attach(connection: &Connection<T>, lane: u32) -> Result<Self, AttachError> {
        Self::attach_waiting_by(connection, lane)
    }
}

impl<T: Trust, W: Wait + Default> Sender<T, W> {
    /// As [`attach`](Self::attach), with a chosen [way of waiting](crate::wait).
    ///
    /// ```
    /// use doorbell::channel::{Lanes, Sender};
    /// use doorbell::peer::Untrusted;
    /// use doorbell::rendezvous::{Connection, Offer, Segment, socket};
    /// use doorbell::wait::Futex;
    /// use std::sync::Arc;
    ///
    /// let (ours, theirs) = socket::pair()?;
    /// // The other process.
    /// let joining = std::thread::spawn(move || -> Connection { socket::join_over(theirs).unwrap() });
    /// let segment = Arc::new(Segment::new(&Offer::of_lanes(Lanes::new(1, 1, 4096).unwrap()))?);
    /// let connection: Connection = socket::host_over(ours, &segment)?;
    /// // While there is no room it sleeps, and never spins.
    /// let mut sender: Sender<Untrusted, Futex> = Sender::attach_waiting_by(&connection, 0)?;
    /// sender.send(b"it waits in the ring")?;
    /// # joining.join().unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn attach_waiting_by(connection: &Connection<T>, lane: u32) -> Result<Self, AttachError> {
        Self::on(connection.attach_context()?, lane)
    }

    /// Takes the sending end of the first lane that nobody sends on.
    ///
    /// ```
    /// use doorbell::channel::{AttachError, Lanes, Sender};
    /// use doorbell::rendezvous::{Connection, Offer, Segment, socket};
    /// use std::sync::Arc;
    ///
    /// let (ours, theirs) = socket::pair()?;
    /// // The other process.
    /// let joining = std::thread::spawn(move || -> Connection { socket::join_over(theirs).unwrap() });
    /// // Two lanes to one receiver.
    /// let segment = Arc::new(Segment::new(&Offer::of_lanes(Lanes::new(2, 1, 4096).unwrap()))?);
    /// let connection: Connection = socket::host_over(ours, &segment)?;
    /// let _first: Sender = Sender::attach_any(&connection)?;
    /// let _second: Sender = Sender::attach_any(&connection)?;
    /// let third: Result<Sender, _> = Sender::attach_any(&connection);
    /// assert!(matches!(third, Err(AttachError::Taken { .. })));
    /// # joining.join().unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AttachError::Taken`] if there is none; else as [`attach`](Self::attach).
    pub fn attach_any(connection: &Connection<T>) -> Result<Self, AttachError> {
        Self::on_any(connection.attach_context()?)
    }

    pub(super) fn on_any(attach_context: AttachContext<'_>) -> Result<Self, AttachError> {
        let lanes = attach_context.segment.lanes().ok_or(AttachError::NoChannels)?.lanes();
        let mut result = Err(AttachError::NoChannels);
        for lane in 0..lanes {
            result = Self::on(attach_context.clone(), lane);
            if !matches!(result, Err(AttachError::Taken { .. })) {
                break;
            }
        }
        result
    }

    pub(super) fn on(attach_context: AttachContext<'_>, number: u32) -> Result<Self, AttachError> {
        if !attach_context.segment.trusts::<T>() {
            return Err(AttachError::Untrusted);
        }
        let lane = Lane::new(attach_context, number)?;
        let end = End::take(&lane, &lane.control().sender, number)?;
        let index = match lane::Sender::attach(lane.capacity(), &lane) {
            Ok(index) => index,
            Err(violation) => {
                end.leave(&lane.control().sender);
                return Err(violation.into());
            }
        };
        let receiver = Partner::new(&lane, &lane.message_state);
        let listener = Listener::new(&lane.room_state, W::NAME);
        let way = W::default();
        let fence = Fence::new(index.tail());
        Ok(Self {
            lane,
            index,
            fence,
            end,
            receiver,
            way,
            listener,
            violation: None,
            trust: PhantomData,
            kept: None,
        })
    }
}

impl Sender<Trusted> {
    pub(super) fn kept_by(self, alive: Arc<Alive>) -> Self {
        let mut sender = self;
        sender.kept = Some(alive);
        sender
    }

    /// As [`attach`](Self::attach), on a segment whose other users are all trusted: threads of this process, forked
    /// children.
    ///
    /// ```
    /// use doorbell::channel::{Lanes, Receiver, Sender};
    /// use doorbell::peer::Trusted;
    /// use doorbell::rendezvous::{Offer, Segment};
    ///
    /// let segment = Segment::for_threads(&Offer::of_lanes(Lanes::new(1, 1, 4096).unwrap()))?;
    /// let mut sender: Sender<Trusted> = Sender::at(&segment, 0)?;
    /// let mut receiver: Receiver<Trusted> = Receiver::at(&segment, 0)?;
    /// sender.send(b"hello")?;
    /// assert_eq!(&*receiver.recv()?, b"hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn at(segment: &Segment, lane: u32) -> Result<Self, AttachError> {
        Self::at_waiting_by(segment, lane)
    }
}

impl<W: Wait + Default> Sender<Trusted, W> {
    /// As [`at`](Self::at), with a chosen [way of waiting](crate::wait).
    ///
    /// ```
    /// use doorbell::channel::{Lanes, Receiver, Sender};
    /// use doorbell::peer::Trusted;
    /// use doorbell::rendezvous::{Offer, Segment};
    /// use doorbell::wait::Futex;
    ///
    /// let segment = Segment::for_threads(&Offer::of_lanes(Lanes::new(1, 1, 4096).unwrap()))?;
    /// let mut sender: Sender<Trusted, Futex> = Sender::at_waiting_by(&segment, 0)?;
    /// let mut receiver: Receiver<Trusted, Futex> = Receiver::at_waiting_by(&segment, 0)?;
    /// sender.send(b"hello")?;
    /// assert_eq!(&*receiver.recv()?, b"hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn at_waiting_by(segment: &Segment, lane: u32) -> Result<Self, AttachError> {
        Self::on(segment.attach_context()?, lane)
    }
}

impl<T: Trust, W: Wait> Sender<T, W> {
    /// The longest message this channel takes, in bytes. A message takes its length in the ring, rounded up to eight, and eight more.
    ///
    /// ```
    /// let (sender, _receiver) = doorbell::channel(4096)?;
    /// assert_eq!(sender.longest(), 4096 / 8 * 3 - 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn longest(&self) -> u64 {
        self.index.longest()
    }

    /// Has anybody taken the receiving end who has not left or died since? Until then messages wait in the ring.
    ///
    /// ```
    /// let (sender, receiver) = doorbell::channel(4096)?;
    /// assert!(sender.has_receiver());
    /// drop(receiver);
    /// assert!(!sender.has_receiver());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn has_receiver(&self) -> bool {
        matches!(Attachment::of(self.lane.control().receiver.load(Ordering::Acquire)), Attachment::Holder(_))
    }

    /// Sends `message`. Waits while there is no room.
    ///
    /// ```
    /// let (mut sender, mut receiver) = doorbell::channel(256)?;
    /// // More than there is room for.
    /// std::thread::spawn(move || (0..100_u8).for_each(|number| sender.send(&[number]).unwrap()));
    /// (0..100_u8).for_each(|number| assert_eq!(&*receiver.recv().unwrap(), [number]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SendError`], never [`SendError::Full`] or [`SendError::TimedOut`].
    #[inline(always)]
    pub fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
        if let Some(room) = self.room_now(message.len()) {
            self.lane.write_all::<T>(&room, message);
            self.publish_and_ring(&room, message.len() as u64);
            return Ok(());
        }
        self.send_at_leisure(message)
    }

    #[cold]
    #[inline(never)]
    fn send_at_leisure(&mut self, message: &[u8]) -> Result<(), SendError> {
        loop {
            // Only `Null` gives up without a deadline.
            match self.send_deadline(message, None) {
                Err(SendError::TimedOut) => {}
                result => return result,
            }
        }
    }

    /// Sends `message`. Waits up to `timeout` while there is no room.
    ///
    /// ```
    /// use doorbell::channel::SendError;
    /// use std::time::Duration;
    ///
    /// let (mut sender, mut receiver) = doorbell::channel(64)?;
    /// while sender.try_send(b"and one").is_ok() {}
    /// assert_eq!(sender.send_timeout(b"and one", Duration::from_millis(1)), Err(SendError::TimedOut));
    /// receiver.recv()?.release();
    /// sender.send_timeout(b"and one", Duration::from_secs(1))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send_timeout(&mut self, message: &[u8], timeout: Duration) -> Result<(), SendError> {
        match self.try_send(message) {
            Err(SendError::Full) => self.send_deadline(message, Some(Deadline::after(timeout))),
            result => result,
        }
    }

    /// Sends `message`. Waits until `deadline` while there is no room; for ever if there is none.
    ///
    /// ```
    /// use doorbell::{Deadline, channel::SendError};
    /// use std::time::Duration;
    ///
    /// let (mut sender, _receiver) = doorbell::channel(64)?;
    /// let deadline = Deadline::after(Duration::from_millis(1));
    /// let error = loop {
    ///     // All together within a millisecond.
    ///     if let Err(error) = sender.send_deadline(b"and one", Some(deadline)) {
    ///         break error;
    ///     }
    /// };
    /// assert_eq!(error, SendError::TimedOut);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send_deadline(&mut self, message: &[u8], deadline: Option<Deadline>) -> Result<(), SendError> {
        let room = self.room(message.len() as u64, deadline)?;
        self.lane.write::<T>(&room, message);
        self.publish_and_ring(&room, message.len() as u64);
        Ok(())
    }

    /// Sends `message` if there is room.
    ///
    /// ```
    /// use doorbell::channel::SendError;
    ///
    /// let (mut sender, mut receiver) = doorbell::channel(64)?;
    /// while sender.try_send(b"and one").is_ok() {}
    /// assert_eq!(sender.try_send(b"and one"), Err(SendError::Full));
    /// receiver.recv()?.release();
    /// sender.try_send(b"and one")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SendError`].
    #[inline(always)]
    pub fn try_send(&mut self, message: &[u8]) -> Result<(), SendError> {
        if let Some(room) = self.room_now(message.len()) {
            self.lane.write_all::<T>(&room, message);
            self.publish_and_ring(&room, message.len() as u64);
            return Ok(());
        }
        self.try_send_at_leisure(message)
    }

    #[cold]
    #[inline(never)]
    fn try_send_at_leisure(&mut self, message: &[u8]) -> Result<(), SendError> {
        let room = self.room_or_full(message.len() as u64)?;
        self.lane.write::<T>(&room, message);
        self.publish_and_ring(&room, message.len() as u64);
        Ok(())
    }

    /// Sends `message` if there is room, else drops it and counts that where the receiver can see it
    /// ([`Receiver::dropped`](super::Receiver::dropped)). Returns whether it was sent.
    ///
    /// ```
    /// let (mut sender, receiver) = doorbell::channel(64)?;
    /// while sender.send_or_drop(b"a sample")? {}
    /// assert_eq!(receiver.dropped(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SendError`], never [`SendError::Full`] or [`SendError::TimedOut`].
    #[inline]
    pub fn send_or_drop(&mut self, message: &[u8]) -> Result<bool, SendError> {
        match self.try_send(message) {
            Ok(()) => Ok(true),
            Err(SendError::Full) => {
                let dropped = &self.lane.control().dropped;
                fault::point();
                dropped.store(dropped.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
                // What went before may not have been told yet.
                self.ring();
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes `message` where a receiver that is awake finds it, and wakes nobody: [`ring`](Self::ring) does, and a push that finds
    /// the channel full. No fence, no system call. For receivers that poll, and for bursts.
    ///
    /// ```
    /// let (mut sender, mut receiver) = doorbell::channel(4096)?;
    /// sender.push(b"one")?;
    /// sender.push(b"two")?;
    /// sender.ring();
    /// assert_eq!((receiver.recv()?.len(), receiver.recv()?.len()), (3, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SendError`].
    #[inline(always)]
    pub fn push(&mut self, message: &[u8]) -> Result<(), SendError> {
        if let Some(room) = self.room_now(message.len()) {
            self.put(&room, message);
            return Ok(());
        }
        self.push_at_leisure(message)
    }

    #[cold]
    #[inline(never)]
    fn push_at_leisure(&mut self, message: &[u8]) -> Result<(), SendError> {
        let room = self.room_or_full(message.len() as u64)?;
        self.put(&room, message);
        Ok(())
    }

    /// Wakes the receiver if it sleeps and waits for no more than what was pushed since the last ring. At most one fence and
    /// one load if it does not; nothing if nothing was pushed.
    ///
    /// ```
    /// let (mut sender, mut receiver) = doorbell::channel(4096)?;
    /// let receiving = std::thread::spawn(move || receiver.recv().unwrap().to_vec());
    /// sender.push(b"wake up")?;
    /// sender.ring();
    /// assert_eq!(receiving.join().unwrap(), b"wake up");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn ring(&mut self) {
        // As long as the fence is left out, one look says that nobody waits.
        if self.lane.must_ring() {
            self.announce();
        }
    }

    #[inline(always)]
    pub(super) fn publish_and_ring(&mut self, room: &lane::Room, length: u64) {
        self.index.publish(room, length, &self.lane);
        self.ring();
    }

    /// Tells of all that was published since the receiver was told last, and of what was sent without a fence since then.
    #[cold]
    #[inline(never)]
    fn announce(&mut self) {
        // What a forked child has a copy of is its parent's to tell of.
        if self.index.unannounced() == 0 || !self.is_ours_at_once() {
            return;
        }
        let Self { lane, index, fence, .. } = self;
        let (words, wanted) = (lane.message_words(), &lane.control().message_wanted);
        let enough = || index.reaches(wanted.load(Ordering::Relaxed));
        let left_out = fence.is_left_out();
        let woken = if left_out { words.announce_unfenced_if(enough) } else { words.announce_if(enough) };
        index.announced();
        if !woken.is_empty() {
            lane.message_state.wake_if_any(woken);
            fence.woke(index.tail(), lane);
        } else if !left_out && fence.is_calm() {
            fence.leave_out(index.tail(), lane);
        }
    }

    /// A batch: what is pushed into it is seen at once by a receiver that is awake, and the ring comes once, when the
    /// batch is dropped.
    ///
    /// ```
    /// let (mut sender, mut receiver) = doorbell::channel::pair(4096)?;
    /// let mut batch = sender.batch();
    /// for part in [b"one", b"two"] {
    ///     batch.push(part)?;
    /// }
    /// drop(batch);
    /// assert_eq!(receiver.recv()?.to_vec(), b"one");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn batch(&mut self) -> Batch<'_, T, W> {
        Batch { sender: self }
    }

    /// Room for a message of up to `most` bytes that is written in place. Waits while there is none.
    ///
    /// ```
    /// let (mut sender, mut receiver) = doorbell::channel::pair(4096)?;
    /// let mut slot = sender.reserve(100)?;
    /// slot[..5].copy_from_slice(b"hello");
    /// slot.commit_first(5)?;
    /// assert_eq!(receiver.recv()?.to_vec(), b"hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SendError`], never [`SendError::Full`] or [`SendError::TimedOut`].
    #[inline]
    pub fn reserve(&mut self, most: usize) -> Result<Slot<'_, T, W>, SendError> {
        let room = loop {
            match self.room(most as u64, None) {
                Err(SendError::TimedOut) => {}
                result => break result?,
            }
        };
        Ok(Slot::new(self, room))
    }

    /// As [`reserve`](Self::reserve), but waits no longer than until `deadline`.
    ///
    /// ```
    /// use doorbell::Deadline;
    /// use std::time::Duration;
    ///
    /// let (mut sender, mut receiver) = doorbell::channel(4096)?;
    /// let mut slot = sender.reserve_deadline(100, Deadline::after(Duration::from_secs(1)))?;
    /// slot.write(0, b"hello");
    /// slot.commit_first(5)?;
    /// assert_eq!(&*receiver.recv()?, b"hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SendError`].
    pub fn reserve_deadline(&mut self, most: usize, deadline: Deadline) -> Result<Slot<'_, T, W>, SendError> {
        let room = self.room(most as u64, Some(deadline))?;
        Ok(Slot::new(self, room))
    }

    /// As [`reserve`](Self::reserve), but does not wait.
    ///
    /// ```
    /// let (mut sender, mut receiver) = doorbell::channel(4096)?;
    /// let mut slot = sender.try_reserve(5)?;
    /// slot.copy_from_slice(b"hello");
    /// slot.commit()?;
    /// // Dropped, it gives its room back, and nothing is sent.
    /// drop(sender.try_reserve(5)?);
    /// assert_eq!(&*receiver.recv()?, b"hello");
    /// assert!(receiver.try_recv()?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SendError`].
    #[inline]
    pub fn try_reserve(&mut self, most: usize) -> Result<Slot<'_, T, W>, SendError> {
        let room = self.room_or_full(most as u64)?;
        Ok(Slot::new(self, room))
    }

    /// A file that becomes readable after [`listen`](Self::listen) returned false, when there is room. For epoll, poll, mio
    /// or tokio, level- or edge-triggered.
    ///
    /// Takes a waiter slot for eventfds at the bell at which the sender waits, for good. Never read from the file or write to it
    /// yourself.
    ///
    /// ```
    /// use rustix::event::epoll;
    ///
    /// let (mut sender, _receiver) = doorbell::channel(4096)?;
    /// let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    /// epoll::add(&events, sender.file()?, epoll::EventData::new_u64(7), epoll::EventFlags::IN)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`WaitError::NoWaiterSlot`].
    pub fn file(&mut self) -> Result<BorrowedFd<'_>, WaitError> {
        self.end.check_ours()?;
        self.listener.file()
    }

    /// Before going back to the event loop: is there room for a message of `length` bytes after all, or something to be told
    /// of the receiver? Makes the file unreadable if not, until there is. Rings for what was pushed.
    ///
    /// Call it when [`try_send`](Self::try_send) found the channel full, and go back to the event loop only after `false`.
    ///
    /// ```
    /// use doorbell::channel::SendError;
    /// use rustix::event::{PollFd, PollFlags, poll};
    ///
    /// let (mut sender, mut receiver) = doorbell::channel::pair(4096)?;
    /// while sender.try_send(&[7; 500]) != Err(SendError::Full) {}
    /// assert!(!sender.listen(500)?);
    /// while receiver.try_recv()?.is_some() {}
    /// poll(&mut [PollFd::new(&sender.file()?, PollFlags::IN)], None)?;
    /// sender.try_send(&[7; 500])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`WaitError::NoWaiterSlot`], [`WaitError::Os`].
    pub fn listen(&mut self, length: usize) -> Result<bool, WaitError> {
        let ready = self.arm(length as u64)?;
        let (_, index) = self.listener.slots().take_eventfd()?;
        if ready {
            // For one who goes back to the event loop all the same.
            self.lane.room_state.put_token(index);
        }
        Ok(ready)
    }

    /// As `listen`, for one who comes back by itself after true.
    pub(crate) fn arm(&mut self, most: u64) -> Result<bool, WaitError> {
        self.end.check_ours()?;
        let (slot, index) = self.listener.slots().take_eventfd()?;
        // The receiver may sleep over what was pushed and not rung.
        self.ring();
        for _ in 0..MOST_TURNS {
            // A receiver that has come looks like room until this has looked.
            if !matches!(self.try_room(most), Ok(None)) {
                break;
            }
            let wanted = self.want_room(most);
            let state = &*self.lane.room_state;
            let mut waiter = [Waiter::new(&state.record().wake, slot)];
            if !listen(&mut waiter, &mut Token { state, index }, || self.may_go_on(wanted))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Room for a message of `length` bytes, to be waited for together with other ends.
    ///
    /// ```
    /// use doorbell::{Select, channel::SendError};
    ///
    /// let (mut sender, mut receiver) = doorbell::channel::pair(4096)?;
    /// while sender.try_send(&[7; 500]) != Err(SendError::Full) {}
    /// while receiver.try_recv()?.is_some() {}
    /// let room = &mut sender.room_for(500);
    /// assert_eq!(Select::new().wait(&mut [room, &mut receiver], None)?, Some(0));
    /// sender.try_send(&[7; 500])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn room_for(&mut self, length: usize) -> RoomFor<'_, T, W> {
        RoomFor { sender: self, length: length as u64 }
    }

    /// The slot of what `try_room` found.
    #[cfg(feature = "tokio")]
    pub(crate) fn slot(&mut self, room: lane::Room) -> Slot<'_, T, W> {
        Slot::new(self, room)
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

    /// Whether a signal that this thread handles ends a wait for room
    /// ([`WaitError::Interrupted`](crate::WaitError::Interrupted)). It does not if this is not called.
    ///
    /// ```
    /// use doorbell::WaitError;
    /// use doorbell::channel::{SendError, Sender};
    /// use doorbell::peer::Trusted;
    ///
    /// /// Sends, unless Ctrl-C comes first, for which the program has a handler.
    /// fn send(sender: &mut Sender<Trusted>, message: &[u8]) -> Result<bool, SendError> {
    ///     sender.set_interruptible(true);
    ///     match sender.send(message) {
    ///         Err(SendError::Wait(WaitError::Interrupted)) => Ok(false),
    ///         sent => sent.map(|()| true),
    ///     }
    /// }
    ///
    /// let (mut sender, _receiver) = doorbell::channel(4096)?;
    /// assert!(send(&mut sender, b"there is room")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_interruptible(&mut self, interruptible: bool) {
        self.listener.set_interruptible(interruptible);
    }

    #[inline(always)]
    pub(super) fn is_ours_at_once(&self) -> bool {
        self.end.is_ours_at_once()
    }

    #[inline(always)]
    fn put(&mut self, room: &lane::Room, message: &[u8]) {
        self.lane.write_all::<T>(room, message);
        self.index.publish(room, message.len() as u64, &self.lane);
    }

    /// Room for nearly every message: nothing has happened to the receiver or this process, and so much is open in one piece.
    #[inline(always)]
    fn room_now(&self, most: usize) -> Option<lane::Room> {
        if self.receiver.may_have_gone(&self.lane.control().receiver) {
            return None;
        }
        self.index.room_at_once(most as u64)
    }

    /// Room without waiting.
    #[inline(always)]
    pub(crate) fn try_room(&mut self, most: u64) -> Result<Option<lane::Room>, SendError> {
        if self.receiver.may_have_gone(&self.lane.control().receiver) {
            self.check_receiver()?;
        }
        let longest = self.index.longest();
        if most > longest {
            return Err(SendError::TooLong { length: most, longest });
        }
        loop {
            if let Some(room) = self.index.room_at_once(most) {
                return Ok(Some(room));
            }
            if !self.look_for_room(most)? {
                return Ok(None);
            }
        }
    }

    /// As `try_room`, for one who will come again: the receiver may sleep over what was pushed and not rung.
    fn room_or_full(&mut self, most: u64) -> Result<lane::Room, SendError> {
        let room = self.try_room(most)?;
        room.ok_or_else(|| {
            self.ring();
            SendError::Full
        })
    }

    /// After a look at the receiver's word, is there room at once?
    #[inline(never)]
    fn look_for_room(&mut self, most: u64) -> Result<bool, SendError> {
        // Since then nothing is open at once.
        if let Some(violation) = self.violation {
            return Err(violation.into());
        }
        if depends_on_cpus(self.lane.capacity()) {
            let theirs = self.lane.control().receiver_cpu.load(Ordering::Relaxed);
            self.index.set_on_one_cpu(theirs == cpu_mark());
        }
        let room = self.index.room(most, &self.lane);
        Ok(room.inspect_err(|violation| self.violation = Some(*violation))?.is_some())
    }

    #[cold]
    fn check_receiver(&mut self) -> Result<(), SendError> {
        if self.end.is_ours() {
            // Another may have come, who cannot do without. In a forked child it is the parent's to say.
            self.fence.take_back(self.index.tail(), &mut self.lane);
        }
        match self.receiver.departed(&self.lane.control().receiver, &self.end) {
            None => Ok(()),
            Some(Departure::Forked) => Err(SendError::Forked),
            Some(Departure::Left) => Err(SendError::Closed),
            Some(Departure::Gone(peer)) => Err(SendError::PeerGone(peer)),
        }
    }

    #[inline]
    fn room(&mut self, most: u64, deadline: Option<Deadline>) -> Result<lane::Room, SendError> {
        match self.try_room(most)? {
            Some(room) => Ok(room),
            None => self.wait_for_room(most, deadline),
        }
    }

    /// Says where this sender wants to be woken that waits for room for `most` bytes. Before it arms: `RingReader::release`
    /// reads it behind its fence.
    fn want_room(&self, most: u64) -> u64 {
        let wanted = self.index.wanted(most);
        fault::point();
        self.lane.control().room_wanted.store(wanted, Ordering::Relaxed);
        wanted
    }

    /// For the `ready` of a wait: has the receiver released beyond `wanted`, or has something happened to it?
    fn may_go_on(&self, wanted: u64) -> bool {
        self.index.may_go_on(wanted, &self.lane) || self.receiver.may_have_gone(&self.lane.control().receiver)
    }

    #[cold]
    fn wait_for_room(&mut self, most: u64, deadline: Option<Deadline>) -> Result<lane::Room, SendError> {
        // The receiver may sleep over what was pushed and not rung.
        self.ring();
        loop {
            let wanted = self.want_room(most);
            let Self { lane, index, receiver, way, listener, .. } = self;
            let ready = || index.may_go_on(wanted, lane) || receiver.may_have_gone(&lane.control().receiver);
            let state = &lane.room_state;
            // Threads take their ends before they send; a process may come later.
            let nobody = Attachment::of(lane.control().receiver.load(Ordering::Acquire)) == Attachment::Never;
            if nobody && deadline.is_none() && state.mapping().scope() == Scope::Threads {
                return Err(SendError::NoReceiver);
            }
            let woken = way.wait(&mut [WaitEntry { state, listener }], ready, deadline)?;
            if let Some(room) = self.try_room(most)? {
                return Ok(room);
            }
            // A hostile receiver can wake us for ever.
            if !woken || deadline.is_some_and(|deadline| deadline.passed()) {
                return Err(if nobody { SendError::NoReceiver } else { SendError::TimedOut });
            }
        }
    }
}

impl<T: Trust, W: Wait> Drop for Sender<T, W> {
    fn drop(&mut self) {
        if self.end.is_ours() {
            self.fence.take_back(self.index.tail(), &mut self.lane);
        }
        self.end.leave(&self.lane.control().sender);
        self.lane.message_state.announce();
    }
}

/// Room for a message, as one of the ends of a [`Select`](crate::Select). See [`Sender::room_for`].
#[derive(Debug)]
pub struct RoomFor<'s, T: Trust, W: Wait> {
    sender: &'s mut Sender<T, W>,
    length: u64,
}

impl<T: Trust, W: Wait> Source for RoomFor<'_, T, W> {
    fn look(&mut self) -> bool {
        // The receiver may sleep over what was pushed and not rung.
        self.sender.ring();
        !matches!(self.sender.try_room(self.length), Ok(None))
    }

    fn parts<'a>(&'a mut self, parts: &mut Parts<'a>) {
        let wanted = self.sender.want_room(self.length);
        let Sender { lane, index, receiver, listener, .. } = &mut *self.sender;
        let (lane, index, receiver) = (&*lane, &*index, &*receiver);
        parts.add(WaitEntry { state: &lane.room_state, listener }, move || {
            index.may_go_on(wanted, lane) || receiver.may_have_gone(&lane.control().receiver)
        });
    }
}

/// Several messages with one ring. See [`Sender::batch`].
#[derive(Debug)]
pub struct Batch<'a, T: Trust, W: Wait> {
    sender: &'a mut Sender<T, W>,
}

impl<T: Trust, W: Wait> Batch<'_, T, W> {
    /// Adds a message, if there is room.
    ///
    /// # Errors
    /// [`SendError`].
    #[inline(always)]
    pub fn push(&mut self, message: &[u8]) -> Result<(), SendError> {
        self.sender.push(message)
    }

    /// Adds a message. While there is no room it rings and waits until `deadline`; for ever if there is none.
    ///
    /// # Errors
    /// [`SendError`].
    #[inline]
    pub fn push_deadline(&mut self, message: &[u8], deadline: Option<Deadline>) -> Result<(), SendError> {
        let room = self.sender.room(message.len() as u64, deadline)?;
        self.sender.put(&room, message);
        Ok(())
    }

    /// Room for a message that is written in place, if there is any. Committing it does not ring.
    ///
    /// # Errors
    /// [`SendError`].
    #[inline]
    pub fn try_reserve(&mut self, most: usize) -> Result<Slot<'_, T, W>, SendError> {
        self.sender.try_reserve(most).map(Slot::quietly)
    }
}

impl<T: Trust, W: Wait> Drop for Batch<'_, T, W> {
    #[inline]
    fn drop(&mut self) {
        self.sender.ring();
    }
}
