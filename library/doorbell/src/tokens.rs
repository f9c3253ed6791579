// SPDX-License-Identifier: MIT OR Apache-2.0
//! What wakes a waiter that holds an eventfd waiter slot.

use crate::descriptor;
use crate::error::Unmade;
use crate::mapping::Scope;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::sync::OnceLock;

/// What the tokens of eventfd waiter slots are. Waiters wait for either in the same ways, by
/// descriptor; the protocol is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tokens {
    /// Counts of eventfds, by write(2).
    #[default]
    Eventfds,
    /// User interrupts of vectors that are read and polled like eventfds:
    /// SENDUIPI, by hardware that has it. The process chooses by
    /// `user_interrupts::start` before; by signals such a vector is an eventfd.
    ///
    /// For the threads of a process and the children that it forks ([`Segment::for_threads`],
    /// [`Segment::for_children`]); with hardware they end with the process that made them, and
    /// a wait then fails ([`WaitError::HungUp`](crate::WaitError::HungUp)). Each process is
    /// connected to what it rings: a child by the first ring that wakes somebody. Where that
    /// cannot be, since it is connected to 256 others, it aborts: a wake-up would be lost.
    ///
    /// ```
    /// use doorbell::rendezvous::{Offer, Segment};
    /// use doorbell::{Bell, Tokens, wait::Eventfd};
    /// use user_interrupts::Backend;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// user_interrupts::start(&[Backend::Hardware, Backend::Signals])?;
    /// let offer = Offer { bells: 1, eventfds: 1, tokens: Tokens::UserInterrupts, ..Offer::default() };
    /// let segment = Segment::for_threads(&offer)?;
    /// let mut waiter: Bell<Eventfd> = segment.bell_waiting_by(0).unwrap();
    /// let ringer = segment.bell(0).unwrap();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| ringer.ring());
    ///     waiter.wait()
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`Segment::for_threads`]: crate::rendezvous::Segment::for_threads
    /// [`Segment::for_children`]: crate::rendezvous::Segment::for_children
    #[cfg(feature = "user_interrupts")]
    UserInterrupts,
}

const EVENTFD_FLAGS: EventfdFlags = EventfdFlags::CLOEXEC.union(EventfdFlags::NONBLOCK);

/// The files of one bell's eventfd waiter slots. Those that no other process will share are made
/// when a waiter takes the slot.
#[derive(Debug, Default)]
pub(crate) struct Files {
    slots: Box<[Slot]>,
    tokens: Tokens,
}

#[derive(Debug, Default)]
struct Slot {
    file: OnceLock<OwnedFd>,
    #[cfg(feature = "user_interrupts")]
    connected: crate::connected::Connected,
}

impl Files {
    /// `count` of them, made now unless they stay in this process.
    pub(crate) fn new(tokens: Tokens, count: usize, scope: Scope) -> Result<Self, Unmade> {
        let files = Self { slots: (0..count).map(|_| Slot::default()).collect(), tokens };
        if scope != Scope::Threads {
            (0..count).try_for_each(|index| files.make(index))?;
        }
        Ok(files)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Number `index`, if it was made.
    pub(crate) fn get(&self, index: usize) -> Option<&OwnedFd> {
        self.slots.get(index)?.file.get()
    }

    /// Makes number `index`, which nobody else does at the same time, unless it was made before.
    pub(crate) fn make(&self, index: usize) -> Result<(), Unmade> {
        if let Some(slot) = self.slots.get(index)
            && slot.file.get().is_none()
        {
            let made = match self.tokens {
                Tokens::Eventfds => {
                    let made = eventfd(0, EVENTFD_FLAGS).and_then(descriptor::kept);
                    made.map_err(|errno| ("eventfd", errno))?
                }
                #[cfg(feature = "user_interrupts")]
                Tokens::UserInterrupts => slot.connected.vector()?,
            };
            let _ = slot.file.set(made);
        }
        Ok(())
    }

    /// Puts a token into number `index` in another way than by write(2), if it is of another kind.
    #[inline]
    #[cfg_attr(not(feature = "user_interrupts"), expect(unused_variables, reason = "files are written to"))]
    pub(crate) fn put(&self, index: usize) -> bool {
        match self.tokens {
            Tokens::Eventfds => false,
            #[cfg(feature = "user_interrupts")]
            Tokens::UserInterrupts => {
                if let Some(slot) = self.slots.get(index)
                    && let Some(vector) = slot.file.get()
                {
                    slot.connected.send(vector);
                }
                true
            }
        }
    }
}

/// Eventfds that another process made.
impl FromIterator<OwnedFd> for Files {
    fn from_iter<I: IntoIterator<Item = OwnedFd>>(made: I) -> Self {
        let slot = |file| Slot {
            file: OnceLock::from(file),
            #[cfg(feature = "user_interrupts")]
            connected: crate::connected::Connected::default(),
        };
        Self { slots: made.into_iter().map(slot).collect(), tokens: Tokens::Eventfds }
    }
}
