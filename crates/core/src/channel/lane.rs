// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two sides of a lane.
//!
//! # How a message travels
//!
//! ```text
//! sender                                          receiver
//! ------                                          --------
//! S1 room? else read `released` (acquire), check  R1 read the word at my index (acquire)
//! S2 write the payload                            R2 0: nothing. Else copy it once, check it
//! S3 write 0 into the word behind the record      R3 read the payload
//! S4 write the record's word (release)            R4 advance my index, which is private
//! S5 announce                                     R5 now and then: write `released` (release), announce
//! ```
//!
//! There is no shared tail. The word of a record says that it is committed, so a short message costs the receiver one
//! cache line: word and payload together. The receiver's index is private too; `released` follows it when an eighth of
//! the ring has been consumed, or when the ring is found empty.
//!
//! # Why the receiver never takes an old word for a new one
//!
//! The word at the receiver's index was written by S3 of the record before (or is one of the zeroes the memory began
//! with), and becomes non-zero by the S4 of its own record alone. S3 comes before the S4 that lets the receiver come
//! here, and R1 acquires what S4 released. A message that does not fit before the end of the ring is written at
//! the ring's first place, and its word there is stored before the skip that publishes it.
//!
//! # A sender killed at any instruction
//!
//! Before S4 the message does not exist; after S4 it is complete. Nothing has to be repaired: a successor walks from
//! `released` along the words until it finds a 0 ([`Sender::attach`]).
//!
//! # A receiver killed at any instruction
//!
//! A successor begins at `released` and gets again what its predecessor had received and not released: every message
//! at least once.
//!
//! # A hostile peer
//!
//! The sender uses one value of the receiver's, `released`, copied once, and accepts it only between the last one and
//! its own index. The receiver uses the record's word, copied once, and accepts it only if the record lies in the
//! ring. Neither lets the other make it touch anything outside.

use super::arithmetic::{
    Record, Reserved, advanced, decode, longest, may_hold_back, message_word, passes, place, record_size,
    reserve, until_wrap,
};
use crate::fault;
use crate::index::Capacity;
use crate::sync::{AtomicU64, Ordering};
use crate::violation::PeerViolation;

/// The words of a lane, where both sides see them.
pub trait Shared {
    /// The word at `place`, a multiple of 8 below the capacity.
    fn word(&self, place: u64) -> &AtomicU64;
    /// The index up to which the receiver has released the ring.
    fn released(&self) -> &AtomicU64;
}

/// What one message's record will take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    reserved: Reserved<u64>,
    most: u64,
    capacity: u64,
}

impl Room {
    /// Where in the ring the payload goes.
    #[inline(always)]
    pub fn payload(&self) -> u64 {
        // In one piece behind the word: below the capacity.
        place(self.reserved.start, self.capacity).wrapping_add(8)
    }

    /// How many bytes it may have.
    #[inline(always)]
    pub fn most(&self) -> u64 {
        self.most
    }
}

/// The sender's private part.
#[derive(Debug)]
pub struct Sender {
    capacity: u64,
    tail: u64,
    /// The last `released` that was checked.
    head: u64,
    /// Up to where the receiver was told.
    announced: u64,
}

impl Sender {
    /// Finds out where the lane's messages end: walks along the records from what the receiver has released.
    ///
    /// # Errors
    /// [`PeerViolation`] if what lies there is not a lane.
    pub fn attach(capacity: Capacity, shared: &impl Shared) -> Result<Self, PeerViolation> {
        let capacity = capacity.get();
        let head = shared.released().load(Ordering::Acquire);
        advanced(head, head, head, capacity)?;
        let mut tail = head;
        loop {
            let word = shared.word(place(tail, capacity)).load(Ordering::Acquire);
            let step = match decode(word, tail, capacity)? {
                Record::Nothing => break,
                Record::Message { length } => record_size(length),
                Record::Skip => until_wrap(tail, capacity),
            };
            tail = tail.wrapping_add(step);
            // There is always a 0 behind the last record, so the records never fill the ring.
            if tail.wrapping_sub(head) >= capacity {
                return Err(PeerViolation::IndexOutOfRange { theirs: tail, ours: head, capacity });
            }
        }
        // Whoever was here before may have died between S4 and S5.
        Ok(Self { capacity, tail, head, announced: head })
    }

    /// The longest message this lane takes.
    pub fn longest(&self) -> u64 {
        longest(self.capacity)
    }

    /// S1. Looks for room for a message of at most `most` bytes, which is at most [`longest`](Self::longest).
    /// `None` while there is none.
    ///
    /// # Errors
    /// [`PeerViolation`] if the receiver released what it cannot have.
    #[inline(always)]
    pub fn room(&mut self, most: u64, shared: &impl Shared) -> Result<Option<Room>, PeerViolation> {
        let size = record_size(most);
        let capacity = self.capacity;
        let room = |reserved| Room { reserved, most, capacity };
        if let Some(reserved) = reserve(capacity, self.tail, self.head, size) {
            return Ok(Some(room(reserved)));
        }
        self.look(shared)?;
        Ok(reserve(capacity, self.tail, self.head, size).map(room))
    }

    /// Reads what the receiver has released.
    #[inline(never)]
    fn look(&mut self, shared: &impl Shared) -> Result<(), PeerViolation> {
        // Acquire: pairs with the release in `Receiver::release`, after which the receiver reads no more there.
        let now = shared.released().load(Ordering::Acquire);
        self.head = advanced(self.head, now, self.tail, self.capacity)?;
        Ok(())
    }

    /// S3 and S4: publishes a message of `length` bytes, at most what was reserved, whose payload was written.
    #[inline(always)]
    pub fn publish(&mut self, room: Room, length: u64, shared: &impl Shared) {
        self.publish_with::<Complete>(room, length, shared);
    }

    #[inline(always)]
    pub(crate) fn publish_with<S: Steps>(&mut self, room: Room, length: u64, shared: &impl Shared) {
        let Reserved { skip, start } = room.reserved;
        let length = length.min(room.most);
        let next = start.wrapping_add(record_size(length));
        let commit = if S::RELEASE_IN_PUBLISH { Ordering::Release } else { Ordering::Relaxed };
        let (here, behind) = (place(start, self.capacity), place(next, self.capacity));
        if S::CLEAR_BEFORE_PUBLISH {
            fault::point();
            shared.word(behind).store(0, Ordering::Relaxed);
        }
        fault::point();
        // Release: pairs with R1 in `Receiver::next`.
        shared.word(here).store(message_word(length), commit);
        if skip > 0 {
            fault::point();
            // The receiver waits here: this is what publishes both.
            shared
                .word(place(self.tail, self.capacity))
                .store(<u64 as super::arithmetic::Word>::SKIP, commit);
        }
        if !S::CLEAR_BEFORE_PUBLISH {
            shared.word(behind).store(0, Ordering::Relaxed);
        }
        self.tail = next;
    }

    /// Was anything published since the receiver was last told?
    #[inline(always)]
    pub fn unannounced(&self) -> bool {
        self.announced != self.tail
    }

    /// Must the receiver be woken that asked to be when `wanted` is committed? Asked after the fence of an
    /// announcement, of all that was published since the last.
    #[inline(always)]
    pub fn reaches(&self, wanted: u64) -> bool {
        passes(wanted, self.announced, self.tail)
    }

    /// The receiver was told.
    #[inline(always)]
    pub fn announced(&mut self) {
        self.announced = self.tail;
    }

    /// The index that must be released before there is room for `most` bytes, less one: where the sender wants to be
    /// woken.
    pub fn wanted(&self, most: u64) -> u64 {
        let size = record_size(most);
        let rest = until_wrap(self.tail, self.capacity);
        let skip = if size <= rest { 0 } else { rest };
        let end = self.tail.wrapping_add(skip).wrapping_add(size).wrapping_add(8);
        end.wrapping_sub(self.capacity).wrapping_sub(1)
    }

    /// Has the receiver released beyond `wanted`, or something that it cannot have? For the `ready` of a wait.
    #[inline]
    pub fn may_go_on(&self, wanted: u64, shared: &impl Shared) -> bool {
        let now = shared.released().load(Ordering::Acquire);
        now.wrapping_sub(self.head) > wanted.wrapping_sub(self.head)
    }
}

/// A message that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where in the ring its payload begins.
    pub payload: u64,
    /// Its length. Payload and length lie in the ring.
    pub length: u64,
}

/// The receiver's private part.
#[derive(Debug)]
pub struct Receiver {
    capacity: u64,
    head: u64,
    released: u64,
}

impl Receiver {
    /// Begins where the last receiver released.
    ///
    /// # Errors
    /// [`PeerViolation::Misaligned`] if that is not a place where a record can begin.
    pub fn attach(capacity: Capacity, shared: &impl Shared) -> Result<Self, PeerViolation> {
        let capacity = capacity.get();
        let head = shared.released().load(Ordering::Acquire);
        advanced(head, head, head, capacity)?;
        Ok(Self { capacity, head, released: head })
    }

    /// R1 and R2: the next message, if one was committed.
    ///
    /// # Errors
    /// [`PeerViolation`] if what the sender wrote is not a record in the ring.
    #[inline(always)]
    pub fn next(&mut self, shared: &impl Shared) -> Result<Option<Found>, PeerViolation> {
        self.next_with::<Complete>(shared)
    }

    #[inline(always)]
    pub(crate) fn next_with<S: Steps>(
        &mut self,
        shared: &impl Shared,
    ) -> Result<Option<Found>, PeerViolation> {
        // At most two words: a skip leads to the first place, where no skip can be.
        loop {
            let here = place(self.head, self.capacity);
            let read = if S::ACQUIRE_IN_NEXT { Ordering::Acquire } else { Ordering::Relaxed };
            // Acquire: pairs with S4 in `Sender::publish`.
            let word = shared.word(here).load(read);
            match decode(word, self.head, self.capacity)? {
                Record::Nothing => return Ok(None),
                Record::Message { length } => {
                    // The record lies in the ring, hence no overflow.
                    return Ok(Some(Found { payload: here.wrapping_add(8), length }));
                }
                Record::Skip => {
                    self.head = self.head.wrapping_add(until_wrap(self.head, self.capacity));
                }
            }
        }
    }

    /// Is there a word at the receiver's place? For the `ready` of a wait.
    #[inline(always)]
    pub fn has_next(&self, shared: &impl Shared) -> bool {
        shared.word(place(self.head, self.capacity)).load(Ordering::Acquire) != 0
    }

    /// Are at least `bytes` bytes of records committed, or something that is not a record?
    pub fn has_bytes(&self, bytes: u64, shared: &impl Shared) -> bool {
        let mut at = self.head;
        while at.wrapping_sub(self.head) < bytes.min(self.capacity) {
            let word = shared.word(place(at, self.capacity)).load(Ordering::Acquire);
            let step = match decode(word, at, self.capacity) {
                Ok(Record::Nothing) => return false,
                Ok(Record::Message { length }) => record_size(length),
                Ok(Record::Skip) => until_wrap(at, self.capacity),
                Err(_) => return true,
            };
            at = at.wrapping_add(step);
        }
        true
    }

    /// The most that [`has_bytes`](Self::has_bytes) may be asked for: with more in the ring a sender may find no room
    /// for its next message, and wait in turn.
    pub fn most_bytes(&self) -> u64 {
        self.capacity >> 2
    }

    /// Where the receiver wants to be woken that waits for `bytes` bytes of records.
    #[inline]
    pub fn wanted(&self, bytes: u64) -> u64 {
        self.head.wrapping_add(bytes.max(1)).wrapping_sub(1)
    }

    /// R4: done with the message that `next` found.
    #[inline(always)]
    pub fn consume(&mut self, found: Found) {
        self.head = self.head.wrapping_add(record_size(found.length));
    }

    /// Is so much consumed that it should be released now?
    #[inline(always)]
    pub fn must_release(&self) -> bool {
        self.head.wrapping_sub(self.released) >= may_hold_back(self.capacity)
    }

    /// Is anything consumed and not released?
    #[inline(always)]
    pub fn can_release(&self) -> bool {
        self.head != self.released
    }

    /// R5: lets the sender write where the receiver has read. Returns what was released before and what is now.
    #[inline]
    pub fn release(&mut self, shared: &impl Shared) -> (u64, u64) {
        self.release_with::<Complete>(shared)
    }

    #[inline(always)]
    pub(crate) fn release_with<S: Steps>(&mut self, shared: &impl Shared) -> (u64, u64) {
        let before = self.released;
        let order = if S::RELEASE_IN_RELEASE { Ordering::Release } else { Ordering::Relaxed };
        fault::point();
        // Release: pairs with `Sender::look`: our reads of the payload come before its writes.
        shared.released().store(self.head, order);
        self.released = self.head;
        (before, self.head)
    }
}

/// Which steps are taken. Everything outside the tests takes [`Complete`]; the tests leave out one at a time and show
/// that the model checker notices.
pub(crate) trait Steps {
    const RELEASE_IN_PUBLISH: bool = true;
    const CLEAR_BEFORE_PUBLISH: bool = true;
    const ACQUIRE_IN_NEXT: bool = true;
    const RELEASE_IN_RELEASE: bool = true;
}

/// Every step.
pub(crate) struct Complete;
impl Steps for Complete {}
