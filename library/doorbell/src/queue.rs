// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work that threads push and whichever thread is free takes.

use crate::deadline::Deadline;
use crate::error::WaitError;
use crate::mapping::MapError;
use crate::select::{Parts, Source};
use crate::wait::{take_or_sleep, wake_all, wake_one};
use crate::watchers::{Watcher, Watchers};
use crossbeam_queue::ArrayQueue;
use doorbell_core::wake_one::WakeOne;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A queue of up to `capacity` values between threads of this
/// process, of whom any may push and any may pop.
///
/// ```
/// let work = doorbell::queue::<u64>(64);
/// let workers: Vec<_> = (0..3)
///     .map(|_| {
///         let work = work.clone();
///         std::thread::spawn(move || std::iter::from_fn(|| work.pop().ok()).sum::<u64>())
///     })
///     .collect();
/// for number in 1..=100 {
///     work.push(number)?;
/// }
/// work.close();
/// assert_eq!(workers.into_iter().map(|worker| worker.join().unwrap()).sum::<u64>(), 5050);
/// # Ok::<(), doorbell::queue::PushError<u64>>(())
/// ```
///
/// # Panics
/// If `capacity` is 0.
pub fn queue<T>(capacity: usize) -> Queue<T> {
    Queue(Arc::new(Shared {
        items: ArrayQueue::new(capacity),
        closed: AtomicBool::new(false),
        takers: Padded::default(),
        givers: Padded::default(),
    }))
}

/// A handle of a [queue](fn@queue). Clones are handles of the same queue.
///
/// A push wakes one of those who wait, and no more: of a hundred idle
/// workers one runs. It makes no system call while nobody waits. Values come
/// in the order in which they were pushed; whoever takes one has it alone.
///
/// # What happens when …
///
/// **… it is [closed](Self::close)?** What is in it is still popped; then `pop` says
/// [`PopError::Closed`], and a push gives its value back.
///
/// **… a handle is dropped?** Nothing, for the others. With the last go the values.
///
/// **… a process forks?** The child has a copy, which is another queue. Between processes use
/// [`Gather`](crate::channel::Gather), or a [service](mod@crate::service).
pub struct Queue<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    items: ArrayQueue<T>,
    closed: AtomicBool,
    takers: Padded,
    givers: Padded,
}

/// Those who wait at one end of the queue.
///
/// On a line of its own (two are fetched at a time on x86): those who
/// push look at one, those who pop at the other.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded {
    sleepers: WakeOne,
    watchers: Watchers,
}

impl Padded {
    /// Wakes one who sleeps, for what was made true before, and tells those who watch.
    #[inline]
    fn wake_one(&self) {
        wake_one(&self.sleepers);
        self.watchers.tell();
    }

    fn wake_all(&self) {
        wake_all(&self.sleepers);
        self.watchers.tell();
    }
}

/// Why a value was not pushed. It comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushError<T> {
    /// There is no room now, or was none before the deadline.
    Full(T),
    /// The queue was closed.
    Closed(T),
    /// Waiting failed.
    Wait(T, WaitError),
}

impl<T> PushError<T> {
    /// The value.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(value) | Self::Closed(value) | Self::Wait(value, _) => value,
        }
    }
}

impl<T> fmt::Display for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str("the queue is full; those who pop are behind"),
            Self::Closed(_) => f.write_str("the queue was closed"),
            Self::Wait(_, error) => error.fmt(f),
        }
    }
}

impl<T: fmt::Debug> std::error::Error for PushError<T> {}

/// Why there was no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PopError {
    /// There is none now, or was none before the deadline.
    Empty,
    /// The queue was closed, and all that was pushed before has been popped.
    Closed,
    /// Waiting failed.
    Wait(WaitError),
}

impl fmt::Display for PopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the queue is empty"),
            Self::Closed => f.write_str("the queue was closed, and is empty"),
            Self::Wait(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PopError {}

impl From<WaitError> for PopError {
    fn from(error: WaitError) -> Self {
        Self::Wait(error)
    }
}

impl<T> Queue<T> {
    /// Pushes `value`. Waits while there is no room.
    ///
    /// # Errors
    /// [`PushError`], never [`PushError::Full`].
    pub fn push(&self, value: T) -> Result<(), PushError<T>> {
        self.push_until(value, None)
    }

    /// Pushes `value` if there is room.
    ///
    /// # Errors
    /// [`PushError::Full`], [`PushError::Closed`].
    pub fn try_push(&self, value: T) -> Result<(), PushError<T>> {
        if self.is_closed() {
            return Err(PushError::Closed(value));
        }
        self.0.items.push(value).map_err(PushError::Full)?;
        self.0.takers.wake_one();
        Ok(())
    }

    /// Pushes `value`. Waits up to `timeout` while there is no room.
    ///
    /// # Errors
    /// [`PushError`].
    pub fn push_timeout(&self, value: T, timeout: Duration) -> Result<(), PushError<T>> {
        self.push_until(value, Some(Deadline::after(timeout)))
    }

    /// Pushes `value`. Waits until `deadline`, if there is one, while there is no room.
    ///
    /// # Errors
    /// [`PushError`].
    pub fn push_until(&self, value: T, deadline: Option<Deadline>) -> Result<(), PushError<T>> {
        let mut kept = Some(value);
        let attempt = || match self.try_push(kept.take()?) {
            Err(PushError::Full(value)) => {
                kept = Some(value);
                None
            }
            result => Some(result),
        };
        match (take_or_sleep(&self.0.givers.sleepers, deadline, attempt), kept) {
            (Ok(Some(result)), _) => result,
            (Err(error), Some(value)) => Err(PushError::Wait(value, error)),
            (Ok(None), Some(value)) => Err(PushError::Full(value)),
            (_, None) => unreachable!("what was not pushed is kept"),
        }
    }

    /// The next value. Waits while there is none.
    ///
    /// # Errors
    /// [`PopError`], never [`PopError::Empty`].
    pub fn pop(&self) -> Result<T, PopError> {
        self.pop_until(None)
    }

    /// The next value, if there is one.
    ///
    /// # Errors
    /// [`PopError::Empty`], [`PopError::Closed`].
    pub fn try_pop(&self) -> Result<T, PopError> {
        // Before the look: what was pushed before the queue was closed is seen by it.
        let closed = self.is_closed();
        match self.0.items.pop() {
            Some(value) => {
                self.0.givers.wake_one();
                Ok(value)
            }
            None if closed => Err(PopError::Closed),
            None => Err(PopError::Empty),
        }
    }

    /// The next value. Waits up to `timeout` while there is none.
    ///
    /// # Errors
    /// [`PopError`].
    pub fn pop_timeout(&self, timeout: Duration) -> Result<T, PopError> {
        self.pop_until(Some(Deadline::after(timeout)))
    }

    /// The next value. Waits until `deadline`, if there is one, while there is none.
    ///
    /// # Errors
    /// [`PopError`].
    pub fn pop_until(&self, deadline: Option<Deadline>) -> Result<T, PopError> {
        let attempt = || match self.try_pop() {
            Err(PopError::Empty) => None,
            result => Some(result),
        };
        take_or_sleep(&self.0.takers.sleepers, deadline, attempt)
            .map_err(PopError::Wait)?
            .unwrap_or(Err(PopError::Empty))
    }

    /// One who waits for values together with other things
    /// ([`Select`](crate::Select)), or in tokio (`Async`).
    ///
    /// ```
    /// use doorbell::Select;
    ///
    /// let work = doorbell::queue::<u64>(8);
    /// let (mut tx, mut rx) = doorbell::channel(4096)?;
    /// let mut popper = work.popper()?;
    /// let pushing = work.clone();
    /// std::thread::spawn(move || pushing.push(7));
    /// assert_eq!(Select::new().wait(&mut [&mut rx, &mut popper], None)?, Some(1));
    /// assert_eq!(popper.try_pop(), Ok(7));
    /// # tx.send(b"")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`MapError`] if there is no memory for its bell.
    pub fn popper(&self) -> Result<Popper<T>, MapError> {
        Ok(Popper { watcher: self.0.takers.watchers.watch()?, queue: self.clone() })
    }

    /// One who waits for room together with other things, or in tokio.
    ///
    /// # Errors
    /// As [`popper`](Self::popper).
    pub fn pusher(&self) -> Result<Pusher<T>, MapError> {
        Ok(Pusher { watcher: self.0.givers.watchers.watch()?, queue: self.clone() })
    }

    fn has_news(&self) -> bool {
        !self.is_empty() || self.is_closed()
    }

    fn has_room(&self) -> bool {
        !self.0.items.is_full() || self.is_closed()
    }

    /// From now on nothing can be pushed; who waits is told. What somebody else is pushing at this
    /// moment may come in still.
    pub fn close(&self) {
        // Release: pairs with `is_closed`.
        self.0.closed.store(true, Ordering::Release);
        self.0.takers.wake_all();
        self.0.givers.wake_all();
    }

    /// Was it closed?
    pub fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    /// How many values are in it now.
    pub fn len(&self) -> usize {
        self.0.items.len()
    }

    /// Is it empty now?
    pub fn is_empty(&self) -> bool {
        self.0.items.is_empty()
    }

    /// How many values fit in.
    pub fn capacity(&self) -> usize {
        self.0.items.capacity()
    }
}

/// A handle of a [`Queue`] that can be waited for together with other things: is there a value, or
/// was it closed? A push tells all who wait so; the others find nothing and wait on.
#[derive(Debug)]
pub struct Popper<T> {
    queue: Queue<T>,
    pub(crate) watcher: Watcher,
}

/// As [`Popper`]: is there room, or was it closed?
#[derive(Debug)]
pub struct Pusher<T> {
    queue: Queue<T>,
    pub(crate) watcher: Watcher,
}

macro_rules! ends {
    ($($end:ident is ready by $ready:ident),*) => {$(
        impl<T> Deref for $end<T> {
            type Target = Queue<T>;

            fn deref(&self) -> &Self::Target {
                &self.queue
            }
        }

        impl<T> $end<T> {
            /// As `listen` of an end of a channel, for one who comes back by itself after true.
            #[cfg(feature = "tokio")]
            pub(crate) fn arm(&mut self) -> Result<bool, WaitError> {
                let Self { queue, watcher } = self;
                watcher.arm(|| queue.$ready())
            }
        }

        impl<T> Source for $end<T> {
            fn look(&mut self) -> bool {
                self.queue.$ready()
            }

            fn parts<'a>(&'a mut self, parts: &mut Parts<'a>) {
                let Self { queue, watcher } = self;
                let queue = &*queue;
                parts.add(watcher.entry(), || queue.$ready());
            }
        }
    )*};
}

ends!(Popper is ready by has_news, Pusher is ready by has_room);

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, capacity) = (self.len(), self.capacity());
        f.debug_struct("Queue").field("len", &len).field("capacity", &capacity).finish_non_exhaustive()
    }
}
