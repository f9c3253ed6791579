// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stamps of single wakes, written by the waiter while nobody looks
//! and read by the host, and the bell by which a waiter that was woken
//! too late calls the host while the events are still in the buffer.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use super::arena::{Arena, Zeroed};
use crate::anatomy::cut::Stamps;
use crate::site::OpenError;
use doorbell_results::machine::clock::Clock;

/// Wakes that are remembered, the last ones; a power of two. 16384 ×
/// 48 bytes are less than the buffers of the events.
const WAKES: u64 = 1 << 14;

#[derive(Debug, Default)]
#[repr(C)]
struct Entry {
    /// Written last; the entry holds this wake and no other.
    sequence: AtomicU64,
    sent: AtomicU64,
    woke: AtomicU64,
    read: AtomicU64,
    rescued: AtomicU32,
    /// Messages that the same wake brought besides its own.
    more: AtomicU32,
}

// SAFETY: atomics only; all are valid at zero.
unsafe impl Zeroed for Entry {}

/// What waiter and host tell each other.
#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Handshake {
    /// Set by the host when the buffer records: the sides may begin.
    traced: AtomicU32,
    /// Set by the waiter while it waits for the host to take the events of its last wake.
    caught: AtomicU32,
    /// A wake of more picoseconds than this is caught.
    above_ps: AtomicU64,
    /// Wakes of more picoseconds than this are counted.
    count_above_ps: AtomicU64,
    above: AtomicU64,
    last: AtomicU64,
}

// SAFETY: atomics only; all are valid at zero.
unsafe impl Zeroed for Handshake {}

#[derive(Debug, Clone)]
pub struct Journal {
    entries: &'static [Entry],
    handshake: &'static Handshake,
    bell: Arc<OwnedFd>,
}

impl Journal {
    pub const BYTES: usize = WAKES as usize * size_of::<Entry>() + 4096;

    /// Places it. Nothing is caught until [`Journal::catch_above`].
    pub fn place(arena: &'static Arena) -> Result<Self, OpenError> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| OpenError::call("eventfd", error))?;
        let journal =
            Self { entries: arena.slice(WAKES as usize)?, handshake: arena.place()?, bell: Arc::new(bell) };
        journal.catch_above(u64::MAX);
        journal.handshake.count_above_ps.store(u64::MAX, Relaxed);
        Ok(journal)
    }

    /// The waiter has taken a message; `more` came with the same wake. Returns once the host has
    /// taken the events, if the wake is to be caught.
    #[inline]
    pub fn woke(&self, stamps: &Stamps, more: u64, clock: Clock) {
        let entry = &self.entries[(stamps.sequence % WAKES) as usize];
        entry.sequence.store(0, Relaxed);
        entry.sent.store(stamps.sent, Relaxed);
        entry.woke.store(stamps.woke, Relaxed);
        entry.read.store(stamps.read, Relaxed);
        entry.rescued.store(stamps.rescued.into(), Relaxed);
        entry.more.store(u32::try_from(more).unwrap_or(u32::MAX), Relaxed);
        // Pairs with the Acquire load in `stamps`.
        entry.sequence.store(stamps.sequence, Release);
        self.handshake.last.store(stamps.sequence, Release);
        let took = clock.ps(stamps.read.max(stamps.woke).saturating_sub(stamps.sent));
        if took > self.handshake.count_above_ps.load(Relaxed) {
            self.handshake.above.fetch_add(1, Relaxed);
        }
        if took > self.handshake.above_ps.load(Relaxed) && more == 0 {
            self.handshake.caught.store(1, Release);
            // An eventfd that cannot be written to is full: then the host is called already.
            let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
            // Pairs with the Release store in `release`. The host dies with this side or before it.
            while self.handshake.caught.load(Acquire) != 0 {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }

    /// Waits, before a side begins, until the events are recorded.
    pub fn await_traced(&self) {
        // Pairs with the Release store in `traced`.
        while self.handshake.traced.load(Acquire) == 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    pub fn traced(&self) {
        self.handshake.traced.store(1, Release);
    }

    /// From now on wakes that take longer are caught.
    pub fn catch_above(&self, ps: u64) {
        self.handshake.above_ps.store(ps, Relaxed);
    }

    /// From now on wakes that take longer are counted.
    pub fn count_above(&self, ps: u64) {
        self.handshake.count_above_ps.store(ps, Relaxed);
    }

    /// Wakes that took longer than what [`Journal::count_above`] says.
    pub fn above(&self) -> u64 {
        self.handshake.above.load(Relaxed)
    }

    /// What becomes readable when a wake is caught.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// The wake for which the waiter waits now.
    pub fn caught(&self) -> Option<Stamps> {
        let mut count = [0; 8];
        // Empty where the call was answered already.
        let _ = rustix::io::read(&*self.bell, &mut count);
        // Pairs with the Release store in `woke`.
        (self.handshake.caught.load(Acquire) != 0)
            .then(|| self.handshake.last.load(Acquire))
            .and_then(|last| self.stamps(last).ok())
    }

    pub fn release(&self) {
        self.handshake.caught.store(0, Release);
    }

    /// Every wake that is remembered, in order, and the number of those that brought several
    /// messages or none of their own.
    pub fn wakes(&self) -> (Vec<Stamps>, u64) {
        let last = self.handshake.last.load(Acquire);
        let (mut wakes, mut merged) = (Vec::new(), 0);
        for sequence in last.saturating_sub(WAKES - 1).max(1)..=last {
            match self.stamps(sequence) {
                Ok(stamps) => wakes.push(stamps),
                Err(Merged(true)) => merged += 1,
                Err(Merged(false)) => {}
            }
        }
        (wakes, merged)
    }

    fn stamps(&self, sequence: u64) -> Result<Stamps, Merged> {
        let entry = &self.entries[(sequence % WAKES) as usize];
        // Pairs with the Release store in `woke`.
        if entry.sequence.load(Acquire) != sequence {
            return Err(Merged(false));
        }
        if entry.more.load(Relaxed) > 0 {
            return Err(Merged(true));
        }
        Ok(Stamps {
            sequence,
            sent: entry.sent.load(Relaxed),
            woke: entry.woke.load(Relaxed),
            read: entry.read.load(Relaxed),
            rescued: entry.rescued.load(Relaxed) != 0,
        })
    }
}

/// Why there are no stamps of a message: whether because it came with others.
struct Merged(bool);

#[cfg(test)]
mod tests {
    use super::*;

    fn journal() -> Journal {
        Journal::place(Arena::map(Journal::BYTES + 4096).unwrap()).unwrap()
    }

    fn wake(sequence: u64, ns: u64) -> Stamps {
        Stamps { sequence, sent: 1000, woke: 1000 + ns, read: 1000 + ns, rescued: false }
    }

    #[test]
    fn the_last_wakes_come_back_in_order_and_merged_ones_are_counted() {
        let journal = journal();
        for sequence in 1..=WAKES + 10 {
            journal.woke(&wake(sequence, 5), u64::from(sequence == WAKES), Clock::MONOTONIC);
        }
        let (wakes, merged) = journal.wakes();
        assert_eq!((wakes.len() as u64, merged), (WAKES - 1, 1));
        assert_eq!(wakes.first().map(|stamps| stamps.sequence), Some(11));
        assert!(wakes.windows(2).all(|pair| pair[0].sequence < pair[1].sequence));
    }

    #[test]
    fn a_wake_beyond_the_threshold_waits_until_the_host_has_seen_it() {
        let journal = journal();
        journal.catch_above(10_000);
        journal.count_above(10_000);
        journal.woke(&wake(1, 10), 0, Clock::MONOTONIC);
        assert_eq!(journal.caught(), None);
        let waiter = journal.clone();
        let thread = std::thread::spawn(move || waiter.woke(&wake(2, 11), 0, Clock::MONOTONIC));
        let caught = loop {
            if let Some(stamps) = journal.caught() {
                break stamps;
            }
            std::thread::yield_now();
        };
        assert_eq!(caught, wake(2, 11));
        assert!(!thread.is_finished());
        journal.release();
        thread.join().unwrap();
        assert_eq!((journal.caught(), journal.above()), (None, 1));
    }
}
