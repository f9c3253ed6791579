// SPDX-License-Identifier: MIT OR Apache-2.0
//! One message to many receivers: a log that its publisher alone writes.
//!
//! ```text
//! publisher                                       subscriber
//! ---------                                       ----------
//! P1 no room? `floor` forward, record by record   B1 read `tail` (acquire); at my cursor: nothing
//! P2 fence (release)                              B2 copy word, number and payload
//! P3 write number, payload and word               B3 fence (acquire)
//! P4 store `tail` (release)                       B4 read `floor`: beyond my cursor? what was copied is void
//! P5 announce, to every subscriber
//! ```
//!
//! Each subscriber has its own cursor, in memory that only it and the
//! publisher share; the log can be mapped read-only. A record is that of a
//! [lane](super::lane), its payload preceded by eight bytes that number it, so
//! that a subscriber who was overtaken can tell how many messages it missed.
//!
//! # Why a subscriber never takes an overwritten message for a good one
//!
//! If any load of B2 sees a store of P3 that destroys the message at the cursor, then the fences P2
//! and B3 order the store of `floor` in P1, which passed the cursor, before B4. So B4 sees it. This
//! is the argument of a sequence lock. The floor itself is released and acquired: a subscriber that
//! jumps to it finds a tail that is not after it.
//!
//! What is read of the message later, where it lies, is a B2 too, and
//! good if B3 and B4 follow ([`Here::is_intact`]).
//!
//! A publisher that dies before P4 has published nothing. A hostile publisher can only make a
//! subscriber copy nonsense out of the log: word and indices are copied once and checked.

use super::arithmetic::{
    Record, Reserved, advanced, decode, longest, message_word, place, record_size, reserve, skip_word,
};
use crate::fault;
use crate::index::Capacity;
use crate::sync::{AtomicU64, Ordering, fence};
use crate::violation::PeerViolation;

/// The words of a log, where all see them.
pub trait Log {
    /// The word at `place`, a multiple of 8 below the capacity.
    fn word(&self, place: u64) -> &AtomicU64;
    /// The index up to which messages were published.
    fn tail(&self) -> &AtomicU64;
    /// The index below which messages may be overwritten.
    fn floor(&self) -> &AtomicU64;
}

/// The bytes a message's number takes.
const NUMBER: u64 = 8;

/// The longest message of a log.
pub fn longest_message(capacity: Capacity) -> u64 {
    longest(capacity.get()).saturating_sub(NUMBER)
}

/// The publisher's private part.
#[derive(Debug)]
pub struct Publisher {
    capacity: u64,
    tail: u64,
    floor: u64,
    number: u64,
}

impl Publisher {
    /// For an empty log, all of whose bytes are zero.
    pub fn new(capacity: Capacity) -> Self {
        Self { capacity: capacity.get(), tail: 0, floor: 0, number: 0 }
    }

    /// The index up to which it has published.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// The index below which messages may have been overwritten.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// How many messages it has published.
    pub fn published(&self) -> u64 {
        self.number
    }

    /// Where the floor must be before there is room for a message of `length` bytes. What lies
    /// below it will be overwritten.
    ///
    /// # Errors
    /// [`PeerViolation`] if somebody else has written into the log.
    pub fn floor_for(&self, length: u64, log: &impl Log) -> Result<u64, PeerViolation> {
        let size = record_size(length.wrapping_add(NUMBER));
        let mut floor = self.floor;
        // An empty log has room.
        while reserve(self.capacity, self.tail, floor, size).is_none() {
            (floor, _) = self.behind_record(floor, log)?;
        }
        Ok(floor)
    }

    /// Where one begins who is to receive the last `most` messages, or as many of them as are still
    /// there: its cursor, and how many were published before.
    ///
    /// # Errors
    /// [`PeerViolation`] if somebody else has written into the log.
    pub fn history(&self, most: u64, log: &impl Log) -> Result<(u64, u64), PeerViolation> {
        let mut there = 0_u64;
        let mut cursor = self.floor;
        while cursor != self.tail {
            let (behind, is_message) = self.behind_record(cursor, log)?;
            (cursor, there) = (behind, there.wrapping_add(u64::from(is_message)));
        }
        cursor = self.floor;
        let mut left = there;
        while left > most {
            let (behind, is_message) = self.behind_record(cursor, log)?;
            (cursor, left) = (behind, left.wrapping_sub(u64::from(is_message)));
        }
        Ok((if left == 0 { self.tail } else { cursor }, self.number.wrapping_sub(left)))
    }

    /// The index after the record at `index`, which is between floor
    /// and tail, and whether that is a message.
    fn behind_record(&self, index: u64, log: &impl Log) -> Result<(u64, bool), PeerViolation> {
        let word = log.word(place(index, self.capacity)).load(Ordering::Relaxed);
        let (step, is_message) = match decode(word, index, self.capacity)? {
            Record::Message { length } => (record_size(length), true),
            Record::Skip { size } => (size, false),
            Record::Nothing => return Err(PeerViolation::BadValue { field: "record", value: 0 }),
        };
        let behind = index.wrapping_add(step);
        if behind.wrapping_sub(self.floor) > self.tail.wrapping_sub(self.floor) {
            return Err(PeerViolation::BadValue { field: "record", value: word });
        }
        Ok((behind, is_message))
    }

    /// P1 to P3: makes room by moving the floor to `floor`, as [`floor_for`](Self::floor_for) said,
    /// and writes the number; `payload` writes the message to the place in the ring it is
    /// given. P4: publishes it.
    pub fn publish(&mut self, floor: u64, length: u64, log: &impl Log, payload: impl FnOnce(u64)) {
        self.publish_with::<Complete>(floor, length, log, payload);
    }

    pub(crate) fn publish_with<S: Steps>(
        &mut self,
        floor: u64,
        length: u64,
        log: &impl Log,
        payload: impl FnOnce(u64),
    ) {
        let inner = length.wrapping_add(NUMBER);
        let size = record_size(inner);
        let Some(Reserved { skip, start }) = reserve(self.capacity, self.tail, floor, size) else { return };
        if S::FLOOR_BEFORE_WRITE {
            self.move_floor::<S>(floor, log);
        }
        if skip > 0 {
            fault::point();
            let skipped = log.word(place(self.tail, self.capacity));
            skipped.store(skip_word(skip), Ordering::Relaxed);
        }
        let here = place(start, self.capacity);
        fault::point();
        log.word(here).store(message_word(inner), Ordering::Relaxed);
        fault::point();
        log.word(here.wrapping_add(8)).store(self.number, Ordering::Relaxed);
        payload(here.wrapping_add(16));
        if !S::FLOOR_BEFORE_WRITE {
            self.move_floor::<S>(floor, log);
        }
        self.tail = start.wrapping_add(size);
        self.number = self.number.wrapping_add(1);
        fault::point();
        // P4. Release: pairs with B1.
        let order = if S::RELEASE_TAIL { Ordering::Release } else { Ordering::Relaxed };
        log.tail().store(self.tail, order);
    }

    fn move_floor<S: Steps>(&mut self, floor: u64, log: &impl Log) {
        if floor != self.floor {
            fault::point();
            // Release: pairs with B4, after which an overtaken subscriber must not see an older tail.
            let order = if S::RELEASE_FLOOR { Ordering::Release } else { Ordering::Relaxed };
            log.floor().store(floor, order);
            self.floor = floor;
        }
        if S::FENCE_AFTER_FLOOR {
            // P2. Pairs with B3.
            fence(Ordering::Release);
        }
    }
}

/// What a subscriber found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing new, or nothing that stayed long enough to be copied.
    Nothing,
    /// A message was copied.
    Message {
        /// How many were missed directly before it.
        lost: u64,
    },
}

/// A message where it lies, which may be overwritten at any time.
#[derive(Clone, Copy, Debug)]
pub struct Here {
    /// The index of its record.
    cursor: u64,
    payload: u64,
    length: u64,
    lost: u64,
}

impl Here {
    /// The place in the ring of its first byte. It does not wrap.
    pub fn payload(&self) -> u64 {
        self.payload
    }

    /// Its length, copied once.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// How many messages were missed directly before it.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// B3 and B4: was nothing overwritten of what was read of it before this call?
    pub fn is_intact(&self, log: &impl Log) -> bool {
        self.is_intact_with::<Complete>(log)
    }

    pub(crate) fn is_intact_with<S: Steps>(&self, log: &impl Log) -> bool {
        !overtaken::<S>(self.cursor, log).1
    }
}

/// B3 and B4: the floor, and whether it has passed `cursor`.
fn overtaken<S: Steps>(cursor: u64, log: &impl Log) -> (u64, bool) {
    if S::FENCE_BEFORE_CHECK {
        // B3. Pairs with P2.
        fence(Ordering::Acquire);
    }
    let floor = log.floor().load(Ordering::Acquire);
    let by = floor.wrapping_sub(cursor);
    (floor, by != 0 && by < 1 << 63)
}

/// A subscriber's private part.
#[derive(Debug)]
pub struct Subscriber {
    capacity: u64,
    cursor: u64,
    /// The number of the next message.
    number: u64,
}

impl Subscriber {
    /// Begins at `cursor`, behind `published` messages, both told by the publisher.
    ///
    /// # Errors
    /// [`PeerViolation::Misaligned`].
    pub fn new(capacity: Capacity, cursor: u64, published: u64) -> Result<Self, PeerViolation> {
        let capacity = capacity.get();
        advanced(cursor, cursor, cursor, capacity)?;
        Ok(Self { capacity, cursor, number: published })
    }

    /// Up to where it has received.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Is there something new? For the `ready` of a wait.
    pub fn has_next(&self, log: &impl Log) -> bool {
        log.tail().load(Ordering::Acquire) != self.cursor
    }

    /// B1 to B4: copies the next message. `copy` is given a place in
    /// the ring and a length, and copies; its result counts only if
    /// this returns a message. It may be called more than once.
    ///
    /// # Errors
    /// [`PeerViolation`] if what the publisher wrote is no log.
    pub fn next(&mut self, log: &impl Log, copy: impl FnMut(u64, u64)) -> Result<Next, PeerViolation> {
        self.next_with::<Complete>(log, copy)
    }

    /// As [`next`](Self::next), without a copy: what is read of the message counts only if it
    /// [is intact](Here::is_intact) afterwards.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn next_in_place(&mut self, log: &impl Log) -> Result<Option<Here>, PeerViolation> {
        let mut place = (0, 0);
        let Next::Message { lost } = self.next(log, |at, length| place = (at, length))? else {
            return Ok(None);
        };
        let (payload, length) = place;
        let cursor = self.cursor.wrapping_sub(record_size(length.wrapping_add(NUMBER)));
        Ok(Some(Here { cursor, payload, length, lost }))
    }

    pub(crate) fn next_with<S: Steps>(
        &mut self,
        log: &impl Log,
        mut copy: impl FnMut(u64, u64),
    ) -> Result<Next, PeerViolation> {
        for _ in 0..MOST_TURNS {
            // B1. Acquire: pairs with P4.
            let tail = log.tail().load(Ordering::Acquire);
            let ahead = tail.wrapping_sub(self.cursor);
            if ahead == 0 {
                return Ok(Next::Nothing);
            }
            let here = place(self.cursor, self.capacity);
            let word = log.word(here).load(Ordering::Relaxed);
            let record = decode(word, self.cursor, self.capacity);
            let mut number = 0;
            if let Ok(Record::Message { length }) = record
                && length >= NUMBER
            {
                number = log.word(here.wrapping_add(8)).load(Ordering::Relaxed);
                copy(here.wrapping_add(16), length.wrapping_sub(NUMBER));
            }
            let (floor, overtaken) = overtaken::<S>(self.cursor, log);
            if overtaken {
                // The publisher has published up to the floor at least, later than our `tail`.
                advanced(floor, floor, floor, self.capacity)?;
                self.cursor = floor;
                continue;
            }
            if ahead > self.capacity {
                let (theirs, ours, capacity) = (tail, self.cursor, self.capacity);
                return Err(PeerViolation::IndexOutOfRange { theirs, ours, capacity });
            }
            let step = match record? {
                Record::Nothing => return Err(PeerViolation::BadValue { field: "record", value: word }),
                Record::Skip { size } => {
                    self.cursor = self.cursor.wrapping_add(size);
                    continue;
                }
                Record::Message { length } if length < NUMBER => {
                    return Err(PeerViolation::LengthOutOfRange { length, available: NUMBER });
                }
                Record::Message { length } => record_size(length),
            };
            if step > ahead {
                return Err(PeerViolation::LengthOutOfRange { length: step, available: ahead });
            }
            let expected = self.number;
            let lost = number.wrapping_sub(expected);
            if lost > 1 << 63 {
                return Err(PeerViolation::IndexWentBack { now: number, before: expected });
            }
            self.cursor = self.cursor.wrapping_add(step);
            self.number = number.wrapping_add(1);
            return Ok(Next::Message { lost });
        }
        Ok(Next::Nothing)
    }
}

/// How often a subscriber catches up with the floor before it reports
/// that it found nothing: a publisher, honest and fast or hostile, can
/// overtake it again each time, and the caller has a deadline to look at.
const MOST_TURNS: u32 = 16;

/// Which steps are taken. Everything outside the tests takes [`Complete`].
pub(crate) trait Steps {
    const FLOOR_BEFORE_WRITE: bool = true;
    const RELEASE_FLOOR: bool = true;
    const FENCE_AFTER_FLOOR: bool = true;
    const FENCE_BEFORE_CHECK: bool = true;
    const RELEASE_TAIL: bool = true;
}

/// Every step.
pub(crate) struct Complete;
impl Steps for Complete {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The smallest log. Panics if its ring is touched outside.
    struct Small {
        words: [AtomicU64; 8],
        tail: AtomicU64,
        floor: AtomicU64,
    }

    impl Log for Small {
        fn word(&self, place: u64) -> &AtomicU64 {
            assert_eq!(place % 8, 0);
            &self.words[place as usize / 8]
        }
        fn tail(&self) -> &AtomicU64 {
            &self.tail
        }
        fn floor(&self) -> &AtomicU64 {
            &self.floor
        }
    }

    /// Every index a publisher can have from a subscriber's on, those about half of all indices
    /// ahead, and some that are none.
    fn distances() -> impl Iterator<Item = u64> + Clone {
        let half = 1_u64 << 63;
        let around =
            |middle: u64| (0..34).map(move |step: u64| middle.wrapping_add(step * 5).wrapping_sub(80));
        around(0).chain((0..9).map(|unit| unit * 8)).chain(around(half)).chain([half - 8, half, half + 8])
    }

    #[test]
    fn whatever_a_publisher_writes_a_subscriber_copies_from_the_ring_alone() {
        let words = (0..(64 << 2 | 3)).chain([u64::MAX, u64::MAX << 2 | 1, 1 << 63 | 1]);
        let numbers = [0, 1, 2, (1 << 63) - 1, 1 << 63, u64::MAX];
        for cursor in (0..64).step_by(8).chain([0_u64.wrapping_sub(8)]) {
            for word in words.clone() {
                // Of all places the words are the same, and the numbers lie in them too.
                for other in numbers {
                    let log = Small {
                        words: core::array::from_fn(|_| AtomicU64::new(other)),
                        tail: AtomicU64::new(0),
                        floor: AtomicU64::new(0),
                    };
                    log.word(place(cursor, 64)).store(word, Ordering::Relaxed);
                    for tail in distances() {
                        log.tail.store(cursor.wrapping_add(tail), Ordering::Relaxed);
                        for floor in [0, 8, 24, 64, 3, (1 << 63) - 8, 1 << 63, u64::MAX - 7] {
                            log.floor.store(cursor.wrapping_add(floor), Ordering::Relaxed);
                            let mut subscriber = Subscriber::new(Capacity::SMALLEST, cursor, 1).unwrap();
                            let next = subscriber.next(&log, |at, length| {
                                assert!(at + length <= 64, "{length} bytes at {at}");
                            });
                            assert_eq!(subscriber.cursor % 8, 0);
                            if let Ok(Next::Message { lost }) = next {
                                assert!(lost <= 1 << 63);
                            }
                        }
                    }
                }
            }
        }
    }
}
