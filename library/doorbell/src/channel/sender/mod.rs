// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sending end.

mod batch;
mod room;
mod taking;

pub use batch::Batch;
pub use room::RoomFor;

use crate::channel::error::SendError;
use crate::channel::fence::Fence;
use crate::channel::lane::{End, Lane, Partner};
use crate::channel::makers::Alive;
use crate::channel::slot::Slot;
use crate::deadline::Deadline;
use crate::peer::{Trust, Untrusted};
use crate::wait::{Adaptive, Listener, Wait};
use doorbell_core::channel::lane;
use doorbell_core::channel::layout::Attachment;
use doorbell_core::fault;
use doorbell_core::violation::PeerViolation;
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
/// A message may be empty. The longest takes three eighths of the ring
/// ([`longest`](Self::longest)).
///
/// # What happens when …
///
/// **… nobody receives yet?** Messages wait in the ring. When it is full, a deadline ends with
/// [`SendError::NoReceiver`]; without one a send between threads says so at once, and one between
/// processes waits for the process to come ([`has_receiver`](Self::has_receiver)).
///
/// **… the receiver leaves or dies?** The next send returns
/// [`SendError::Closed`] or [`SendError::PeerGone`]; so does a send that
/// waits for room. When another receiver attaches, sending works again.
///
/// **… this sender is dropped?** The receiver gets all messages and then
/// [`RecvError::Closed`](super::RecvError::Closed).
///
/// **… a process forks?** The end stays the parent's: both would write the same bytes. Dropping the
/// child's copy does nothing. Take a child's ends in the child.
#[derive(Debug)]
pub struct Sender<T: Trust = Untrusted, W: Wait = Adaptive> {
    /// How far we have sent, and how far the receiver is known to have released. In memory of our
    /// own: what others write there is taken over once it was checked.
    pub(super) index: lane::Sender,
    /// Left out only while the receiver runs one on our processor before it sleeps; taken back
    /// before this end is left.
    fence: Fence,
    /// The word at the lane that says we are there, from `on` to the
    /// drop, in the process that took it.
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

impl<T: Trust, W: Wait> Sender<T, W> {
    /// The longest message this channel takes, in bytes. A message takes its length in the ring,
    /// rounded up to eight, and eight more.
    ///
    /// ```
    /// let (sender, _receiver) = doorbell::channel(4096)?;
    /// assert_eq!(sender.longest(), 4096 / 8 * 3 - 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn longest(&self) -> u64 {
        self.index.longest()
    }

    /// Has anybody taken the receiving end who has not left or died
    /// since? Until then messages wait in the ring.
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

    /// Sends `message` if there is room, else drops it and counts that where the receiver can see
    /// it ([`Receiver::dropped`](super::Receiver::dropped)). Returns whether it was sent.
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

    /// Writes `message` where a receiver that is awake finds it, and wakes nobody:
    /// [`ring`](Self::ring) does, and a push that finds the channel full. No fence, no system
    /// call. For receivers that poll, and for bursts.
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

    /// Wakes the receiver if it sleeps and waits for no more than what was pushed since the last
    /// ring. At most one fence and one load if it does not; nothing if nothing was pushed.
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

    /// Tells of all that was published since the receiver was told last, and of what was sent
    /// without a fence since then.
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

    /// Room for a message of up to `most` bytes that is written in
    /// place. Waits while there is none.
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

    /// The slot of what `try_room` found.
    #[cfg(feature = "tokio")]
    pub(crate) fn slot(&mut self, room: lane::Room) -> Slot<'_, T, W> {
        Slot::new(self, room)
    }

    /// As `End::check_ours`.
    #[cfg(feature = "tokio")]
    pub(crate) fn check_ours(&self) -> Result<(), crate::error::WaitError> {
        self.end.check_ours()
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn listener(&mut self) -> &mut Listener {
        &mut self.listener
    }

    /// Whether a signal that this thread handles ends a wait for room
    /// ([`WaitError::Interrupted`](crate::WaitError::Interrupted)).
    /// It does not if this is not called.
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
