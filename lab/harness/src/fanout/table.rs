// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words that the notifier, the receivers and the host of a fan-out share.
//!
//! Two thousand receivers cannot each have a histogram (350 KB): they write bare readings of the
//! clock into rows of their own, and the notifier makes series of them when all is over.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};

use crate::arena::{Arena, Zeroed};
use crate::control::Progress;
use crate::site::{OpenError, Word};
use doorbell_results::configuration::WaitPolicy;
use doorbell_results::machine::clock::{Clock, Ticks};
use doorbell_results::record::SideCounters;

#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub clock: Clock,
    pub wait: WaitPolicy,
    pub receivers: u32,
    pub warmup: u64,
    pub rounds: u64,
    /// Nanoseconds from the start of one round to the start of the next.
    pub interval_ns: u64,
    /// Seed of the orders in which receivers are posted to.
    pub seed: u64,
    pub shared: bool,
}

/// The shared words.
#[derive(Debug)]
pub struct Table {
    pub part: Part,
    pub control: &'static Control,
    /// Message bytes, written before each round and read by each receiver.
    pub payload: &'static [AtomicU8],
    sent: &'static [AtomicU64],
    rows: &'static [AtomicU64],
}

#[derive(Debug)]
#[repr(C)]
pub struct Control {
    pub ready: Word,
    /// Set by the host when it has measured the memory of all: the rounds may begin.
    pub go: Word,
    /// Set by the notifier when the last round is over, before it wakes everybody to hear it.
    pub stop: Word,
    /// Set by the host when the user interrupts.
    pub interrupted: Word,
    /// The round that is being posted, from 1.
    pub round: Word,
    pub progress: Progress,
}

// SAFETY: atomics only; all are valid at zero.
unsafe impl Zeroed for Control {}

/// Words at the head of a receiver's row; each index is a field of [`ReceiverRow`].
mod field {
    pub(super) const SEEN: usize = 0;
    pub(super) const WAKES: usize = 1;
    pub(super) const TIMEOUTS: usize = 2;
    pub(super) const LATE: usize = 3;
    pub(super) const SPURIOUS: usize = 4;
    pub(super) const DONE: usize = 5;
    pub(super) const TASK: usize = 6;
    /// The first of the seven that [`ReceiverRow::leave`](super::ReceiverRow::leave) writes.
    pub(super) const COUNTED: usize = 7;
    /// One more than the number of moves; 0 where the kernel does not tell.
    pub(super) const MIGRATIONS: usize = 14;
    /// The CPU at the start in the upper half, at the end in the lower.
    pub(super) const CPUS: usize = 15;
    /// How many there are: two cache lines.
    pub(super) const HEAD: usize = 16;
}

impl Table {
    /// Bytes of shared memory that a table takes, alignment included.
    pub fn bytes(part: &Part, payload: u32) -> usize {
        let words = part.receivers as usize * (part.all_rounds() + 1 + row_words(part));
        size_of::<Control>() + words * 8 + payload as usize + 4096
    }

    pub fn place(arena: &'static Arena, part: Part, payload: u32) -> Result<Self, OpenError> {
        let receivers = part.receivers as usize;
        Ok(Self {
            part,
            control: arena.place()?,
            payload: arena.bytes(payload as usize)?,
            // One round more than there are: a receiver looks whether the next one has been posted already.
            sent: arena.words(receivers * (part.all_rounds() + 1))?,
            rows: arena.words(receivers * row_words(&part))?,
        })
    }

    #[inline]
    pub fn row(&self, number: u32) -> ReceiverRow<'_> {
        let words = row_words(&self.part);
        let start = number as usize * words;
        ReceiverRow { words: &self.rows[start..start + words], rounds: self.part.all_rounds() }
    }

    pub fn rows(&self) -> impl Iterator<Item = ReceiverRow<'_>> {
        (0..self.part.receivers).map(|number| self.row(number))
    }

    /// One for tests, with one round of warm-up.
    #[cfg(test)]
    pub(super) fn sample(receivers: u32, rounds: u64, shared: bool) -> Self {
        let part = Part {
            clock: Clock::MONOTONIC,
            wait: WaitPolicy::Block,
            receivers,
            warmup: 1,
            rounds,
            interval_ns: 0,
            seed: 1,
            shared,
        };
        Self::place(Arena::map(Self::bytes(&part, 0)).unwrap(), part, 0).unwrap()
    }

    /// When receiver `number` was posted to in `round` (from 0, one
    /// more than there are allowed); zero before that.
    #[inline(always)]
    pub fn sent(&self, round: u64, number: u32) -> &AtomicU64 {
        &self.sent[round as usize * self.part.receivers as usize + number as usize]
    }
}

impl Part {
    pub fn all_rounds(&self) -> usize {
        (self.warmup + self.rounds) as usize
    }
}

/// Head, a reading for each round and a count of wakes for each
/// round, in whole pairs of cache lines.
fn row_words(part: &Part) -> usize {
    (field::HEAD + 2 * part.all_rounds()).next_multiple_of(16)
}

/// What one receiver writes, and nobody else.
#[derive(Debug, Clone, Copy)]
pub struct ReceiverRow<'table> {
    words: &'table [AtomicU64],
    rounds: usize,
}

impl ReceiverRow<'_> {
    #[inline]
    fn get(&self, field: usize) -> u64 {
        self.words[field].load(Relaxed)
    }
    #[inline]
    fn set(&self, field: usize, value: u64) {
        self.words[field].store(value, Relaxed);
    }
    #[inline]
    fn add(&self, field: usize) {
        self.set(field, self.get(field) + 1);
    }

    #[inline]
    pub fn seen(&self) -> u64 {
        // Pairs with the Release store in `saw`: whoever sees the count sees the readings.
        self.words[field::SEEN].load(Acquire)
    }
    #[inline(always)]
    pub fn saw(&self, round: u64, awake: Ticks) {
        self.words[field::HEAD + round as usize].store(awake, Relaxed);
        self.words[field::SEEN].store(round + 1, Release);
    }
    /// When it woke in `round` (from 0); zero if it did not.
    #[inline]
    pub fn awake(&self, round: usize) -> Ticks {
        self.get(field::HEAD + round)
    }
    /// It woke in `round`, perhaps not for the first time, through an object that all share.
    #[inline]
    pub fn woke(&self, round: usize, awake: Ticks) {
        if self.wakes(round) == 0 {
            self.set(field::HEAD + round, awake);
        }
        self.add(field::HEAD + self.rounds + round);
        // Pairs with the Acquire load in `all_wakes`.
        self.words[field::WAKES].store(self.get(field::WAKES) + 1, Release);
    }
    #[inline]
    pub fn wakes(&self, round: usize) -> u64 {
        self.get(field::HEAD + self.rounds + round)
    }
    pub fn all_wakes(&self) -> u64 {
        self.words[field::WAKES].load(Acquire)
    }
    /// Timed waits that ran out with nothing to see.
    pub fn timeouts(&self) -> u64 {
        self.get(field::TIMEOUTS)
    }
    #[inline]
    pub fn timed_out(&self) {
        self.add(field::TIMEOUTS);
    }
    /// Posts seen only because a timed wait ran out.
    pub fn late(&self) -> u64 {
        self.get(field::LATE)
    }
    #[inline]
    pub fn was_late(&self) {
        self.add(field::LATE);
    }
    /// Wakes for nothing.
    pub fn spurious(&self) -> u64 {
        self.get(field::SPURIOUS)
    }
    #[inline]
    pub fn woke_for_nothing(&self) {
        self.add(field::SPURIOUS);
    }
    /// Forgets its events of the warm-up.
    pub fn forget(&self) {
        [field::TIMEOUTS, field::LATE, field::SPURIOUS].into_iter().for_each(|field| self.set(field, 0));
    }
    pub fn task(&self) -> u64 {
        self.get(field::TASK)
    }
    pub fn stands_ready(&self, task: u32) {
        self.set(field::TASK, task.into());
    }
    /// Whether it has left its loop.
    pub fn done(&self) -> bool {
        // Pairs with the Release store in `leave`.
        self.words[field::DONE].load(Acquire) != 0
    }
    pub fn leave(&self, counters: &SideCounters) {
        let counted = [
            counters.voluntary_switches,
            counters.involuntary_switches,
            counters.minor_faults,
            counters.major_faults,
            counters.user_ns,
            counters.system_ns,
            counters.window_ns,
        ];
        (field::COUNTED..).zip(counted).for_each(|(field, count)| self.set(field, count));
        self.set(field::MIGRATIONS, counters.migrations.map_or(0, |moves| moves + 1));
        let cpu = |index: usize| u64::from(counters.cpus.get(index).copied().unwrap_or_default());
        self.set(field::CPUS, cpu(0) << 32 | cpu(1));
        self.words[field::DONE].store(1, Release);
    }
    pub fn counters(&self) -> SideCounters {
        let cpus = self.get(field::CPUS);
        let [
            voluntary_switches,
            involuntary_switches,
            minor_faults,
            major_faults,
            user_ns,
            system_ns,
            window_ns,
        ] = std::array::from_fn(|place| self.get(field::COUNTED + place));
        SideCounters {
            side: "receiver".to_owned(),
            cpus: vec![(cpus >> 32) as u32, cpus as u32],
            migrations: self.get(field::MIGRATIONS).checked_sub(1),
            voluntary_switches,
            involuntary_switches,
            minor_faults,
            major_faults,
            user_ns,
            system_ns,
            window_ns,
            ..SideCounters::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_receiver_writes_is_read_back_and_touches_no_other_row() {
        let table = Table::sample(17, 3, false);
        for number in 0..17 {
            for round in 0..4 {
                table.row(number).saw(round, u64::from(number) * 100 + round);
                table.sent(round, number).store(7, Relaxed);
            }
        }
        for (number, row) in table.rows().enumerate() {
            assert_eq!(row.seen(), 4);
            assert!((0..4).all(|round| row.awake(round) == (number * 100 + round) as u64));
            assert_eq!(table.sent(4, number as u32).load(Relaxed), 0, "no round after the last was posted");
        }
    }

    #[test]
    fn counters_come_back_as_they_were_left() {
        let table = Table::sample(2, 1, false);
        let counters = SideCounters {
            side: "receiver".to_owned(),
            cpus: vec![3, 4],
            migrations: Some(0),
            voluntary_switches: 5,
            involuntary_switches: 6,
            minor_faults: 7,
            major_faults: 8,
            user_ns: 9,
            system_ns: 10,
            window_ns: 11,
            ..SideCounters::default()
        };
        assert!(!table.row(1).done());
        table.row(1).leave(&counters);
        assert!(table.row(1).done() && !table.row(0).done());
        assert_eq!(table.row(1).counters(), counters);
        let unknown = SideCounters { migrations: None, ..counters };
        table.row(0).leave(&unknown);
        assert_eq!(table.row(0).counters().migrations, None);
    }

    #[test]
    fn wakes_through_a_shared_object_are_counted_by_round_and_the_first_is_stamped() {
        let table = Table::sample(1, 2, false);
        let row = table.row(0);
        row.woke(1, 50);
        row.woke(1, 60);
        assert_eq!((row.wakes(0), row.wakes(1), row.awake(1), row.all_wakes()), (0, 2, 50, 2));
    }
}
