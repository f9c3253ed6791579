// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shared words by which the sides meet, part, and can be watched. None of them is touched by a
//! measured path that exchanges nothing but the notification
//! ([`Timing::Around`](doorbell_results::configuration::Timing::Around)), except for a load of
//! `stop`, which stays in the reader's own cache until it changes.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::arena::{Arena, Zeroed};
use super::roles::Role;
use crate::site::{OpenError, Word};
use doorbell_results::record::LastSeen;

/// Stamps kept for notifications that were sent and not yet seen; a power of two.
///
/// An open loop may run ahead of its waiter by this many before the sender has to wait. 4096 × 16
/// bytes stay in the second-level cache.
pub const STAMPS: usize = 4096;

/// What the side that notifies first of a slice tells with a
/// notification: a number of rounds, and what begins with it.
///
/// It is never taken back. Whoever is told knows at which number the slice began, and what is said
/// of an earlier one is of an earlier slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// From here on rounds are recorded.
    Record(u64),
    /// This is the slice's last round.
    Last(u64),
}

impl Told {
    /// Says it to the other side, which hears it after the next notification.
    pub(crate) fn tell(self, control: &Control) {
        let word = match self {
            Self::Record(from) => from << 1,
            Self::Last(at) => at << 1 | 1,
        };
        // Pairs with the Acquire load in `heard`.
        control.told.store(word, Ordering::Release);
    }

    /// What was said of `sequence`, in a slice that began after number `began`.
    #[inline]
    pub(crate) fn heard(control: &Control, began: u64, sequence: u64) -> Option<Self> {
        // Pairs with the Release store in `tell`.
        let word = control.told.load(Ordering::Acquire);
        let number = word >> 1;
        let told = if word & 1 == 1 { Self::Last(number) } else { Self::Record(number) };
        (began < number && number <= sequence).then_some(told)
    }
}

/// What a side is doing; the watchdog names it when nothing moves any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Step {
    Starting = 0,
    /// Stands at a barrier of the rendezvous.
    Meets = 1,
    Pauses = 2,
    /// Proves that the waiter sleeps.
    Proves = 3,
    Notifies = 4,
    Waits = 5,
    /// Waits for the waiter's acknowledgement.
    AwaitsTaken = 6,
    Finished = 7,
    Operates = 8,
    /// Sleeps while another program has its turn.
    AwaitsTurn = 9,
    /// Makes its report and waits for nobody any more.
    Reports = 10,
}

impl Step {
    pub fn name(value: u32) -> &'static str {
        match value {
            0 => "starting",
            1 => "meets",
            2 => "pauses",
            3 => "proves the waiter asleep",
            4 => "notifies",
            5 => "waits",
            6 => "awaits the acknowledgement",
            7 => "finished",
            8 => "operates",
            9 => "awaits its turn beside another program",
            10 => "reports",
            _ => "unknown",
        }
    }
}

/// One side's own line: written by it alone, read by the watchdog once it suspects a hang.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Progress {
    pub step: AtomicU32,
    pub sequence: AtomicU64,
    /// Its task number as the kernel knows it, for the proof that it sleeps.
    pub task: AtomicU32,
}

#[derive(Debug, Default)]
#[repr(C)]
pub struct Stamp {
    pub sent: AtomicU64,
    /// When it was due, ticks; equal to `sent` in a closed loop.
    pub due: AtomicU64,
    /// When the waiter was awake, ticks; written where both sides have one core, on which a call
    /// that lasts may hold the waiter's run.
    pub woke: AtomicU64,
}

/// One direction's messages: how many were published, how many taken,
/// and the stamps of those in between.
#[derive(Debug)]
#[repr(C)]
pub struct Mail {
    /// Messages published; the last one's sequence number. Written by
    /// the notifier before it notifies.
    pub published: Published,
    /// Messages whose notification was sent; the last one's sequence
    /// number. Written by the notifier after its call, so that a look
    /// at the mechanism finds the notification of whatever is seen here.
    pub rung: Published,
    /// Messages taken; written by the waiter.
    pub taken: Published,
    /// Stamps by sequence number modulo [`STAMPS`].
    pub stamps: [Stamp; STAMPS],
}

/// A sequence number alone on its cache lines.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Published(pub AtomicU64);

#[derive(Debug)]
#[repr(C)]
pub struct Control {
    /// Sides that have arrived at the current barrier.
    pub arrived: Word,
    /// Set by the side that ends the trial, before its last notification.
    pub stop: Word,
    /// What the side that notifies first tells in slices; see [`Told`].
    told: AtomicU64,
    /// Set where a side could not take an end: nobody uses the mechanism.
    pub(crate) broken: Word,
    /// Set by the host when the user interrupts: the first side then ends its window early.
    pub interrupted: Word,
    pub progress: [Progress; 2],
    pub mail: [Mail; 2],
}

// SAFETY: atomics and arrays of atomics only; all are valid at zero.
unsafe impl Zeroed for Control {}

impl Control {
    pub fn place(arena: &'static Arena) -> Result<&'static Self, OpenError> {
        arena.place::<Self>()
    }

    /// Waits until `sides` sides have come to barrier `number` (counted from 1).
    ///
    /// Sleeps in short steps instead of spinning: both sides may
    /// share one CPU. Nothing is measured here.
    pub fn meet(&self, sides: u32, number: u32) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        // Pairs with the AcqRel increments of the other sides: what
        // each did before the barrier is visible after it.
        while self.arrived.load(Ordering::Acquire) < sides * number {
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
    }

    pub(crate) fn places(&self) -> [(u32, u64); 2] {
        self.progress
            .each_ref()
            .map(|side| (side.step.load(Ordering::Relaxed), side.sequence.load(Ordering::Relaxed)))
    }

    /// The same in words, for the record of a hang.
    pub(crate) fn last_seen(&self, roles: [Role; 2]) -> Vec<LastSeen> {
        let places = self.places();
        let seen = |role: Role| {
            let (step, sequence) = places[role.index()];
            LastSeen { side: role.name().to_owned(), step: Step::name(step).to_owned(), sequence }
        };
        roles.map(seen).into()
    }
}
