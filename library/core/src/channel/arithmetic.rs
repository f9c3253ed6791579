// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arithmetic on the indices and record words of a lane.
//!
//! # Summary
//!
//! Indices count bytes, run freely and wrap at the end of their type; a place in the ring is an
//! index modulo the capacity, a power of two. A record is one word and its payload, padded to
//! [`unit`](Word::UNIT) bytes. It never wraps: what is left before the end of the ring is skipped
//! if a record does not fit there.
//!
//! # Details
//!
//! The word of a record is `count << 2 | kind`:
//!
//! | kind | meaning |
//! |---:|---|
//! | 0 | nothing committed here yet; the whole word is 0 |
//! | 1 | a message of `count` bytes |
//! | 2 | `count` units are skipped, the word's own among them; at most to the end of the ring |
//!
//! Every function is generic over the width. The program runs on `u64`; the tests go through
//! **all** states of `u8`. That says something about `u64` because no function contains a constant
//! that depends on the width.

use crate::violation::PeerViolation;
use core::fmt::Debug;

/// An unsigned integer on which indices run.
pub trait Word: Copy + Debug + Ord {
    /// Records begin at multiples of this many bytes, and their word has this many.
    const UNIT: Self;
    /// None.
    const ZERO: Self;
    /// One byte.
    const ONE: Self;
    /// The low two bits of a record's word.
    const KIND: Self;
    /// The kind of a message.
    const MESSAGE: Self;
    /// The kind of a skip.
    const SKIP: Self;
    /// Wraps.
    fn plus(self, other: Self) -> Self;
    /// Wraps.
    fn minus(self, other: Self) -> Self;
    /// Bitwise.
    fn and(self, other: Self) -> Self;
    /// Bitwise.
    fn or(self, other: Self) -> Self;
    /// Bitwise, exclusive.
    fn xor(self, other: Self) -> Self;
    /// Towards the high end; bits pushed out are lost.
    fn up2(self) -> Self;
    /// Towards the low end; bits pushed out come in at the high end.
    fn around2(self) -> Self;
    /// Towards the low end.
    fn down(self, bits: u32) -> Self;
    /// For an error report.
    fn wide(self) -> u64;
}

macro_rules! word {
    ($type:ty) => {
        impl Word for $type {
            const UNIT: Self = 8;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const KIND: Self = 3;
            const MESSAGE: Self = 1;
            const SKIP: Self = 2;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self & other
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }
            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }
            #[inline(always)]
            fn up2(self) -> Self {
                self << 2
            }
            #[inline(always)]
            fn around2(self) -> Self {
                self.rotate_right(2)
            }
            #[inline(always)]
            fn down(self, bits: u32) -> Self {
                self >> bits
            }
            #[inline(always)]
            fn wide(self) -> u64 {
                u64::from(self)
            }
        }
    };
}

word!(u64);
#[cfg(test)]
word!(u8);

/// Where `index` lies in a ring of `capacity` bytes.
#[inline(always)]
pub fn place<I: Word>(index: I, capacity: I) -> I {
    index.and(capacity.minus(I::ONE))
}

/// How many bytes lie from the place of `index` to the end of the ring.
#[inline(always)]
pub fn until_wrap<I: Word>(index: I, capacity: I) -> I {
    capacity.minus(place(index, capacity))
}

/// The longest message of a lane: its record takes at most three eighths of the ring.
///
/// A record that does not fit before the end of the ring costs up to its own
/// size in skipped bytes, and a receiver may hold back up to an eighth before
/// it says that it is done with them ([`may_hold_back`]): with three eighths
/// there is room for any message as soon as everything before it was received.
#[inline(always)]
pub fn longest<I: Word>(capacity: I) -> I {
    let eighth = capacity.down(3);
    eighth.plus(eighth).plus(eighth).and(I::ZERO.minus(I::UNIT)).minus(I::UNIT)
}

/// How many consumed bytes a receiver may keep to itself before it releases them.
#[inline(always)]
pub fn may_hold_back<I: Word>(capacity: I) -> I {
    capacity.down(3)
}

/// The bytes a message of `length` takes in the ring. `length` is at most [`longest`].
#[inline(always)]
pub fn record_size<I: Word>(length: I) -> I {
    let one_less = I::UNIT.minus(I::ONE);
    length.plus(one_less).and(I::ZERO.minus(I::UNIT)).plus(I::UNIT)
}

/// The word of a message's record.
#[inline(always)]
pub fn message_word<I: Word>(length: I) -> I {
    length.up2().or(I::MESSAGE)
}

/// The word that skips `size` bytes, its own among them: whole units.
#[inline(always)]
pub fn skip_word<I: Word>(size: I) -> I {
    // Units, in front of the kind's two bits.
    size.down(1).or(I::SKIP)
}

/// Checks an index that the other side may only move forward, in units, up to `limit`.
///
/// # Errors
/// [`PeerViolation::Misaligned`], [`PeerViolation::IndexOutOfRange`].
#[inline(always)]
pub fn advanced<I: Word>(before: I, now: I, limit: I, capacity: I) -> Result<I, PeerViolation> {
    let one_less = I::UNIT.minus(I::ONE);
    if now.and(one_less) != I::ZERO {
        return Err(PeerViolation::Misaligned { value: now.wide(), unit: I::UNIT.wide() });
    }
    if now.minus(before) > limit.minus(before) {
        return Err(PeerViolation::IndexOutOfRange {
            theirs: now.wide(),
            ours: limit.wide(),
            capacity: capacity.wide(),
        });
    }
    Ok(now)
}

/// Where a sender's next record goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved<I> {
    /// Bytes before the end of the ring that are skipped.
    pub skip: I,
    /// The index of the record's word.
    pub start: I,
}

/// Finds `size` bytes in one piece for a record, and room for the
/// word after it. `None` while there is none.
///
/// `tail` is at most `capacity` ahead of `head`, and `size` is a [`record_size`].
#[inline(always)]
pub fn reserve<I: Word>(capacity: I, tail: I, head: I, size: I) -> Option<Reserved<I>> {
    let rest = until_wrap(tail, capacity);
    let skip = if size <= rest { I::ZERO } else { rest };
    let free = capacity.minus(tail.minus(head));
    // At most 3/8 + 3/8 of the ring and one unit: no overflow.
    let needed = skip.plus(size).plus(I::UNIT);
    if needed <= free { Some(Reserved { skip, start: tail.plus(skip) }) } else { None }
}

/// As [`reserve`], while the word at index `hurdle` is still to be read: skips it if the record and
/// the word after it do not fit before.
///
/// `head` is at the ring's first place, `tail` in the same lap before `hurdle`.
#[inline(always)]
pub fn reserve_around<I: Word>(capacity: I, tail: I, head: I, hurdle: I, size: I) -> Option<Reserved<I>> {
    let before = hurdle.minus(tail);
    // At most 3/8 of the ring and a unit.
    if size.plus(I::UNIT) <= before {
        return Some(Reserved { skip: I::ZERO, start: tail });
    }
    let skip = before.plus(I::UNIT);
    let free = capacity.minus(tail.minus(head));
    // At most the ring, 3/8 of it and two units: no overflow.
    let needed = skip.plus(size).plus(I::UNIT);
    if needed <= free { Some(Reserved { skip, start: tail.plus(skip) }) } else { None }
}

/// How many bytes from the place of `tail` on are free in one piece, with the word after them.
///
/// `tail` is at most `capacity` less one unit ahead of `head`.
#[inline(always)]
pub fn open<I: Word>(capacity: I, tail: I, head: I) -> I {
    let free = capacity.minus(tail.minus(head)).minus(I::UNIT);
    free.min(until_wrap(tail, capacity))
}

/// The index that must be released before there is room for a record of `size` bytes behind `tail`,
/// less one: where a sender wants to be woken.
pub fn room_wanted<I: Word>(capacity: I, tail: I, size: I) -> I {
    let rest = until_wrap(tail, capacity);
    let skip = if size <= rest { I::ZERO } else { rest };
    tail.plus(skip).plus(size).plus(I::UNIT).minus(capacity).minus(I::ONE)
}

/// The length of the message whose word this is; of any other word a number beyond every length.
///
/// What [`decode`] says at leisure, for the common case: a word is a message's at its place if this
/// is at most [`longest`] and at most what is left of the ring there.
#[inline(always)]
pub fn length_at_once<I: Word>(word: I) -> I {
    // The two bits of the kind come to the high end, and only a message's are 0 by then.
    word.xor(I::MESSAGE).around2()
}

/// What a record's word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<I> {
    /// Nothing was committed here yet.
    Nothing,
    /// A message.
    Message {
        /// Its bytes. The record lies in the ring.
        length: I,
    },
    /// The next record is so much further on.
    Skip {
        /// Whole units, and at most what is left of the ring.
        size: I,
    },
}

/// Takes the word at `index` apart.
///
/// # Errors
/// [`PeerViolation::BadValue`] if it means nothing; [`PeerViolation::LengthOutOfRange`] if the
/// record would leave the ring or be longer than any.
#[inline(always)]
pub fn decode<I: Word>(word: I, index: I, capacity: I) -> Result<Record<I>, PeerViolation> {
    if word == I::ZERO {
        return Ok(Record::Nothing);
    }
    let length = word.down(2);
    let kind = word.and(I::KIND);
    if kind == I::MESSAGE {
        // The first comparison keeps the sum in the second from overflowing.
        if length <= longest(capacity) && record_size(length) <= until_wrap(index, capacity) {
            return Ok(Record::Message { length });
        }
        let available = until_wrap(index, capacity).minus(I::UNIT).wide();
        return Err(PeerViolation::LengthOutOfRange { length: length.wide(), available });
    }
    if kind == I::SKIP {
        let half = word.minus(I::SKIP);
        let size = half.plus(half);
        // The first comparison notices what was lost by doubling.
        let whole = skip_word(size) == word && size != I::ZERO;
        if whole && size < capacity && size <= until_wrap(index, capacity) {
            return Ok(Record::Skip { size });
        }
    }
    Err(PeerViolation::BadValue { field: "record", value: word.wide() })
}

/// Does moving an index from `old` to `new` pass `wanted`, at which
/// the other side wants to be woken?
///
/// The rule of virtio's EVENT_IDX (Virtual I/O Device specification 1.2, 2.7.10): wake if `wanted`
/// is among `old ..= new - 1`.
#[inline(always)]
pub fn passes<I: Word>(wanted: I, old: I, new: I) -> bool {
    new.minus(wanted).minus(I::ONE) < new.minus(old)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const CAPACITIES: [u8; 2] = [64, 128];

    fn units() -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(|index| index % 8 == 0)
    }

    /// Every (capacity, head, tail) a lane can be in.
    fn states() -> impl Iterator<Item = (u8, u8, u8)> {
        CAPACITIES.into_iter().flat_map(|capacity| {
            units().flat_map(move |head| {
                (0..=capacity)
                    .filter(|used| used % 8 == 0)
                    .map(move |used| (capacity, head, head.wrapping_add(used)))
            })
        })
    }

    fn lengths(capacity: u8) -> impl Iterator<Item = u8> {
        0..=longest(capacity)
    }

    /// The bytes of the ring from `index` on, as places.
    fn bytes(capacity: u8, index: u8, count: u8) -> Vec<u8> {
        (0..count).map(|step| index.wrapping_add(step) % capacity).collect()
    }

    #[test]
    fn no_index_of_the_peer_is_accepted_but_a_whole_number_of_units_between_the_last_and_the_limit() {
        for (capacity, before, limit) in states() {
            for now in 0..=u8::MAX {
                let within = (0..=capacity).any(|step| {
                    step <= limit.wrapping_sub(before) && now == before.wrapping_add(step) && now % 8 == 0
                });
                assert_eq!(advanced(before, now, limit, capacity).is_ok(), within);
            }
        }
    }

    #[test]
    fn what_is_reserved_is_free_in_one_piece_and_leaves_room_for_the_next_word() {
        for (capacity, head, tail) in states() {
            let used = bytes(capacity, head, tail.wrapping_sub(head));
            for length in lengths(capacity) {
                let size = record_size(length);
                assert!(size >= length + 8 && size < length + 16 && size % 8 == 0);
                let Some(Reserved { skip, start }) = reserve(capacity, tail, head, size) else { continue };
                assert_eq!(start, tail.wrapping_add(skip));
                assert!(skip == 0 || start % capacity == 0);
                assert!(start % capacity + size <= capacity, "in one piece");
                let taken = bytes(capacity, tail, skip + size + 8);
                assert!(taken.iter().all(|byte| !used.contains(byte)), "free");
                let next = start.wrapping_add(size);
                assert!(
                    next.wrapping_sub(head) <= capacity,
                    "the new tail is an index the other side accepts"
                );
            }
        }
    }

    /// Whatever is held back, a ring whose messages were all received takes the longest message.
    #[test]
    fn an_empty_ring_has_room_for_every_message() {
        for (capacity, head, tail) in states() {
            if tail.wrapping_sub(head) > may_hold_back(capacity) {
                continue;
            }
            for length in lengths(capacity) {
                assert!(reserve(capacity, tail, head, record_size(length)).is_some());
            }
        }
    }

    #[test]
    fn every_word_at_every_place_is_nothing_or_a_record_in_the_ring_or_a_violation() {
        for capacity in CAPACITIES {
            for index in units() {
                for word in 0..=u8::MAX {
                    match decode(word, index, capacity) {
                        Ok(Record::Nothing) => assert_eq!(word, 0),
                        Ok(Record::Message { length }) => {
                            assert!(length <= longest(capacity));
                            assert!(index % capacity + 8 + length <= capacity);
                            assert_eq!(message_word(length), word);
                        }
                        Ok(Record::Skip { size }) => {
                            assert_eq!(skip_word(size), word);
                            assert!(size % 8 == 0 && size > 0, "a skip always makes progress");
                            assert!(size < capacity, "to another place");
                            assert!(index % capacity + size <= capacity);
                        }
                        Err(_) => assert_ne!(word, 0),
                    }
                }
            }
        }
    }

    #[test]
    fn a_length_is_taken_at_once_exactly_where_decoding_finds_a_message() {
        for capacity in CAPACITIES {
            for index in units() {
                for word in 0..=u8::MAX {
                    let length = length_at_once(word);
                    let at_once = length <= longest(capacity) && length <= until_wrap(index, capacity) - 8;
                    let expected = decode(word, index, capacity) == Ok(Record::Message { length });
                    assert_eq!(at_once, expected, "{word:#x} at {index}");
                    assert!(at_once || !matches!(decode(word, index, capacity), Ok(Record::Message { .. })));
                }
            }
        }
    }

    #[test]
    fn what_is_open_has_room_for_a_record_exactly_where_it_can_be_reserved_without_a_skip() {
        for (capacity, head, tail) in
            states().filter(|(capacity, head, tail)| tail.wrapping_sub(*head) < *capacity)
        {
            for length in lengths(capacity) {
                let size = record_size(length);
                let reserved = reserve(capacity, tail, head, size);
                assert_eq!(
                    size <= open(capacity, tail, head),
                    reserved == Some(Reserved { skip: 0, start: tail })
                );
            }
        }
    }

    /// Every (capacity, head, hurdle, tail) of a lane that began
    /// again: the first three in one lap, in this order.
    fn states_begun_again() -> impl Iterator<Item = (u8, u8, u8, u8)> {
        CAPACITIES.into_iter().flat_map(|capacity| {
            let laps = units().filter(move |index| index % capacity == 0);
            laps.flat_map(move |head| {
                (8..capacity).step_by(8).flat_map(move |hurdle| {
                    (0..hurdle)
                        .step_by(8)
                        .map(move |used| (capacity, head, head.wrapping_add(hurdle), head.wrapping_add(used)))
                })
            })
        })
    }

    #[test]
    fn what_is_reserved_around_a_hurdle_is_free_in_one_piece_and_neither_the_hurdle_nor_the_word_behind_it_is_written()
     {
        for (capacity, head, hurdle, tail) in states_begun_again() {
            let used = bytes(capacity, head, tail.wrapping_sub(head));
            for length in lengths(capacity) {
                let size = record_size(length);
                let Some(Reserved { skip, start }) = reserve_around(capacity, tail, head, hurdle, size)
                else {
                    continue;
                };
                let skipped = decode(skip_word(skip), tail, capacity);
                assert!(skip == 0 || skipped == Ok(Record::Skip { size: skip }));
                assert_eq!(start, tail.wrapping_add(skip));
                assert!(start % capacity + size <= capacity, "in one piece");
                let mut written = bytes(capacity, start, size + 8);
                written.extend(bytes(capacity, tail, 8));
                assert!(written.iter().all(|byte| !used.contains(byte)), "free");
                let kept = bytes(capacity, hurdle, 8);
                assert!(written.iter().all(|byte| !kept.contains(byte)), "the hurdle stays");
            }
        }
    }

    /// Whether the receiver has followed, and whatever it holds back.
    #[test]
    fn a_ring_begun_again_has_room_for_every_message_as_soon_as_all_was_received() {
        for (capacity, head, hurdle, tail) in states_begun_again() {
            let skipped = capacity - hurdle.wrapping_sub(head);
            let behind = tail.wrapping_sub(head);
            let held = behind > 0 && skipped + behind > may_hold_back(capacity);
            for length in lengths(capacity).filter(|_| !held) {
                let size = record_size(length);
                let reserved = reserve_around(capacity, tail, head, hurdle, size).expect("room");
                // Who gives it back and wants more has room too, after the hurdle.
                let tail = reserved.start;
                if tail.wrapping_sub(head) > hurdle.wrapping_sub(head) && behind == 0 {
                    for longer in length..=longest(capacity) {
                        assert!(reserve(capacity, tail, head, record_size(longer)).is_some());
                    }
                }
            }
        }
    }

    #[test]
    fn there_is_room_exactly_when_the_wanted_index_was_passed() {
        for (capacity, head, tail) in states() {
            for length in lengths(capacity) {
                let size = record_size(length);
                let wanted = room_wanted(capacity, tail, size);
                // Everything up to `tail` may be released, and nothing before `tail - capacity`.
                let passed = passes(wanted, tail.wrapping_sub(capacity), head);
                assert_eq!(
                    reserve(capacity, tail, head, size).is_some(),
                    passed,
                    "{capacity} {head} {tail} {length}"
                );
            }
        }
    }

    #[test]
    fn what_a_sender_writes_a_receiver_accepts() {
        for (capacity, head, tail) in states() {
            for length in lengths(capacity).filter(|length| *length < 64) {
                if let Some(Reserved { skip, start }) = reserve(capacity, tail, head, record_size(length)) {
                    assert_eq!(decode(message_word(length), start, capacity), Ok(Record::Message { length }));
                    let skipped = decode(skip_word(skip), tail, capacity);
                    assert!(skip == 0 || skipped == Ok(Record::Skip { size: skip }));
                }
            }
        }
    }

    #[test]
    fn a_wake_is_due_exactly_when_the_wanted_index_is_passed() {
        for old in 0..=u8::MAX {
            for wanted in 0..=u8::MAX {
                // `new` goes on from `old`, so that what was passed grows by one index with each step.
                let mut passed = false;
                for step in 0..=u8::MAX {
                    let new = old.wrapping_add(step);
                    assert_eq!(passes(wanted, old, new), passed, "{old} to {new}, {wanted} wanted");
                    passed |= new == wanted;
                }
            }
        }
    }
}
