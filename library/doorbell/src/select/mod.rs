// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for unlike ends at once.

mod source;
mod timer;

pub use source::{File, Selectable};
pub(crate) use source::{Parts, Source};
pub use timer::Timer;

use crate::deadline::Deadline;
use crate::error::WaitError;
use crate::wait::{Adaptive, MOST_FUTEXES, sleep_on_files, sleep_on_futexes};
use rustix::io::Errno;
use rustix::thread::futex::{WaitvFlags, waitv};
use rustix::time::ClockId;
use source::Place;

/// Waits until one of several ends has something, whatever they are: [`Bell`](crate::Bell)s,
/// [`Receiver`](crate::channel::Receiver)s, [`Gather`](crate::channel::Gather)s,
/// [`Subscriber`](crate::channel::broadcast::Subscriber)s,
/// [`Duplex`](crate::service::Duplex)es and [`Service`](crate::service::Service)s, senders
/// that need [room](crate::channel::Sender::room_for),
/// [queues](crate::queue::Queue::popper), [permits](crate::Notify::waiter),
/// [descriptors](File) and [moments](Timer). No runtime is needed, and no thread.
///
/// ```
/// use doorbell::{Bell, Select};
///
/// let (mut tx, mut rx) = doorbell::channel(4096)?;
/// let mut stop = Bell::new()?;
/// let ringer = stop.clone();
/// std::thread::spawn(move || {
///     tx.send(b"work").unwrap();
///     ringer.ring();
///     tx
/// });
/// let mut select = Select::new();
/// loop {
///     match select.wait(&mut [&mut rx, &mut stop], None)? {
///         Some(0) => {
///             if let Some(message) = rx.try_recv()? {
///                 assert_eq!(&message[..], b"work");
///             }
///         }
///         _ => break,
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What happens when …
///
/// **… several have something?** One of them is named. The search begins after the one that was
/// named last, so that each gets its turn however busy the others are.
///
/// **… an end is named?** Call its `try_recv` (`try_wait`, `try_send`, a read that does not block).
/// It may find nothing, rarely, as with every such wait: then wait again. Nothing is taken from an
/// end by waiting, so nothing is lost with a wait that is given up. A message that was lent out by
/// a receiver is received when it is waited for.
///
/// **… a peer dies, or leaves?** Its end is named, whose `try_recv`
/// says so; as long as it does, take that end out.
///
/// **… a bell's waiter hears of a ring?** `try_wait` says how often it was rung; a death is told by
/// [`wait_timeout`](crate::Bell::wait_timeout).
///
/// # How it sleeps
///
/// For bells and ends of channels it spins as long as that pays, as [`Adaptive`] does, and then
/// sleeps on all their futexes at once (`futex_waitv`, since Linux 5.16). With descriptors among
/// them, or on more than 128 bells, or where the kernel has no such call, it sleeps in `poll`, for
/// which each bell lends it one of its eventfds, which the end keeps; [`means`](Self::means)
/// says which of both this machine has.
#[derive(Debug)]
pub struct Select {
    way: Adaptive,
    means: Means,
    /// Where the search begins.
    turn: usize,
}

/// How a [`Select`] sleeps that waits for bells and ends of channels alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Means {
    /// On their futexes, by `futex_waitv`.
    Futexes,
    /// In `poll`, on their eventfds.
    Files {
        /// What the kernel says to `futex_waitv`; `None` if this was asked for.
        why: Option<Errno>,
    },
}

impl Means {
    /// Asks the kernel.
    fn probe() -> Self {
        // No futex at all is refused as invalid, by a kernel that has the call.
        match waitv(&[], WaitvFlags::empty(), None, ClockId::Monotonic) {
            Ok(_) | Err(Errno::INVAL) => Self::Futexes,
            Err(errno) => Self::Files { why: Some(errno) },
        }
    }
}

impl Default for Select {
    fn default() -> Self {
        Self::new()
    }
}

impl Select {
    /// Asks the kernel what it has, and learns from its waits how
    /// long to spin: keep it between them.
    pub fn new() -> Self {
        Self::by(Means::probe())
    }

    /// One that sleeps in `poll` for bells too.
    pub fn by_files() -> Self {
        Self::by(Means::Files { why: None })
    }

    fn by(means: Means) -> Self {
        Self { way: Adaptive::default(), means, turn: 0 }
    }

    /// How it sleeps for bells and ends of channels.
    pub fn means(&self) -> Means {
        self.means
    }

    /// Waits until one of `ends` has something, or is to be told
    /// something of, and says which. Waits until `deadline`, if there
    /// is one. `None` if it is too late, or if there are no ends.
    ///
    /// # Errors
    /// [`WaitError::NoWaiterSlot`] if it sleeps in `poll` and all eventfds of a bell are taken;
    /// [`WaitError::Interrupted`] if one of the ends [asked for
    /// that](crate::Bell::set_interruptible); [`WaitError::Os`].
    pub fn wait(&mut self, ends: &mut [&mut dyn Selectable], deadline: Option<Deadline>) -> Place {
        loop {
            if let Some(place) = self.look(ends) {
                return Ok(Some(place));
            }
            // Also where something hostile seems to have something again and again.
            if ends.is_empty() || deadline.is_some_and(|deadline| deadline.passed()) {
                return Ok(None);
            }
            self.sleep(ends, deadline)?;
        }
    }

    fn look(&mut self, ends: &mut [&mut dyn Selectable]) -> Option<usize> {
        let first = self.turn.min(ends.len());
        let place = (first..ends.len()).chain(0..first).find(|place| ends[*place].look())?;
        self.turn = place + 1;
        Some(place)
    }

    fn sleep(
        &mut self,
        ends: &mut [&mut dyn Selectable],
        deadline: Option<Deadline>,
    ) -> Result<(), WaitError> {
        let mut parts = Parts::default();
        ends.iter_mut().for_each(|end| end.parts(&mut parts));
        let Parts { mut entries, ready, mut files, until } = parts;
        let deadline = deadline.into_iter().chain(until).min();
        let ready = || ready.iter().any(|ready| ready());
        let by_futexes = files.is_empty()
            && !entries.is_empty()
            && (entries.len() == 1 || self.means == Means::Futexes && entries.len() <= MOST_FUTEXES);
        if by_futexes {
            self.way.wait_and_sleep(&mut entries, ready, deadline, sleep_on_futexes)
        } else {
            self.way.wait_and_sleep(&mut entries, ready, deadline, |entries, ready, deadline| {
                sleep_on_files(entries, &mut files, ready, deadline)
            })
        }
        .map(drop)
    }
}
