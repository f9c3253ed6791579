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
//! S3 write 0 into the word after the record      R3 read the payload
//! S4 write the record's word (release)            R4 advance my index, which is private
//! S5 announce                                     R5 now and then: write `released` (release), announce
//! ```
//!
//! There is no shared tail. The word of a record says that it is committed, so a short message
//! costs the receiver one cache line: word and payload together. The receiver's index is private
//! too; `released` follows it when an eighth of the ring has been consumed, and, without an
//! announcement, when the ring is found empty.
//!
//! What both sides do for nearly every message is a few comparisons with numbers they keep to
//! themselves: the sender knows how many bytes are open in one piece before it must look at
//! `released` again, the receiver how long a message may be. Everything else is out of line.
//!
//! # Why the receiver never takes an old word for a new one
//!
//! The word at the receiver's index was written by S3 of the record before (or is one of the zeroes
//! the memory began with), and becomes non-zero by the S4 of its own record alone. S3 comes before
//! the S4 that lets the receiver come here, and R1 acquires what S4 released. Where a record does
//! not fit before the end of the ring, the sender writes 0 into the ring's first word and then a
//! skip into the word at its tail: a record without a payload, by S3 and S4.
//!
//! # Beginning again
//!
//! What went through a large ring once has left the caches until the next message
//! comes there. So a sender that finds everything released, and is further on
//! than `WINDOW` (on one processor `WINDOW_ON_ONE_CPU`), skips the rest of the
//! ring though there is room, and writes where it wrote not long ago.
//!
//! What it skips holds nothing, and the receiver has released all before: from then on it is free
//! but for one word, the skip itself, which the receiver is still to read. The sender goes around
//! this *hurdle* by another skip, until it sees that the receiver has followed. So a ring begun
//! again takes as many messages as another, but for two units and what does not fit in one piece.
//! That the index runs on by up to a lap where nothing lies changes no order: S1 acquired the
//! release of all that was read there, and the hurdle is in nobody's record.
//!
//! # Why a release may go unannounced
//!
//! A sender that sleeps for room was told of none that is enough for its message. Of the ring a
//! receiver has told all but what it holds back, less than an eighth ([`may_hold_back`]). When it
//! has received everything, there is room for any message even so, hence the index that the sender
//! wants was passed by what was told: it does not sleep. A receiver that has not told of following
//! a skip that began the ring again holds back that skip and what lies after, less than an
//! eighth together: between them and the hurdle there are six eighths.
//!
//! # A sender killed at any instruction
//!
//! Before S4 the message does not exist; after S4 it is complete. Nothing has
//! to be repaired: a successor walks from `released` along the words until it
//! finds a 0 ([`Sender::attach`]). A skip to the ring's first place that is the
//! first of them is a hurdle, whether its writer began again or had no room.
//!
//! # A receiver killed at any instruction
//!
//! A successor begins at `released` and gets again what its predecessor had received and not
//! released: every message at least once.
//!
//! # A hostile peer
//!
//! The sender uses one value of the receiver's, `released`, copied once,
//! and accepts it only between the last one and its own index. The receiver
//! uses the record's word, copied once, and accepts it only if the record
//! lies in the ring. Neither lets the other make it touch anything outside.

use super::arithmetic::{
    Record, Reserved, advanced, decode, length_at_once, longest, may_hold_back, message_word, open, passes,
    place, record_size, reserve, reserve_around, room_wanted, skip_word, until_wrap,
};
use crate::fault;
use crate::index::Capacity;
use crate::sync::{AtomicU64, Ordering};
use crate::violation::PeerViolation;

/// So many bytes of the ring are used again and again as long as the receiver keeps up, and two
/// messages if they are longer.
///
/// As much as a core has for itself (1 MiB where it was chosen): with less, the lines that are
/// written anew are still in the receiver's cache and must be taken from there, which takes twice
/// as long between two cores as from the cache they share; with more, they are in none.
///
/// Where faults are injected it is so small that the tests' rings begin again.
const WINDOW: u64 = if cfg!(feature = "fault_injection") { 128 } else { 1 << 20 };
/// The same where both sides share a processor: what the receiver has read
/// lies in the sender's own cache, and the less of it is used, with both
/// directions and what the messages are copied from, the nearer it stays.
const WINDOW_ON_ONE_CPU: u64 = if cfg!(feature = "fault_injection") { 64 } else { 128 << 10 };

/// At most so many records without a message lie in front of one: a skip
/// to the ring's first place, one around the hurdle, and what a sender
/// leaves that gave its room back. One more is a hostile sender's.
const MOST_SKIPS: u32 = 4;

/// Does a ring of `capacity` bytes begin again sooner where both sides share a processor?
#[inline]
pub fn depends_on_cpus(capacity: Capacity) -> bool {
    capacity.get() > WINDOW_ON_ONE_CPU
}

/// The words of a lane, where both sides see them.
pub trait Shared {
    /// The word at `place`, a multiple of 8 below the capacity.
    fn word(&self, place: u64) -> &AtomicU64;
    /// The index up to which the receiver has released the ring.
    fn released(&self) -> &AtomicU64;
}

/// Room for one message: a record's word, and after it in one piece
/// as many bytes as the message may have.
#[derive(Debug, PartialEq, Eq)]
pub struct Room {
    /// The sender's index, where the record begins, and what leaves its place: kept at hand, for
    /// what lies in memory would be loaded anew after the payload.
    tail: u64,
    mask: u64,
    most: u64,
    /// Of what was open, so much is left when all of it is used.
    left: u64,
}

impl Room {
    /// Where in the ring the payload goes.
    #[inline(always)]
    pub fn payload(&self) -> u64 {
        // In one piece after the word: at most the capacity.
        self.start().wrapping_add(8)
    }

    /// The place of the record's word.
    #[inline(always)]
    fn start(&self) -> u64 {
        self.tail & self.mask
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
    /// One less: what leaves a place of an index.
    mask: u64,
    longest: u64,
    tail: u64,
    /// At most so many bytes are open from `tail` on ([`open`]): as many as were at the last look,
    /// less what was published since, and never more than the longest record takes.
    open: u64,
    /// Everything before is free: what was released, or after it what was skipped to begin again.
    head: u64,
    /// The last `released` that was checked.
    released: u64,
    /// The index, a lap after the receiver's, at whose place it is
    /// still to read the skip that began the ring again.
    hurdle: Option<u64>,
    window: u64,
    /// Up to where the receiver was told.
    announced: u64,
}

impl Sender {
    /// Finds out where the lane's messages end: walks along the
    /// records from what the receiver has released.
    ///
    /// # Errors
    /// [`PeerViolation`] if what lies there is not a lane.
    pub fn attach(capacity: Capacity, shared: &impl Shared) -> Result<Self, PeerViolation> {
        let capacity = capacity.get();
        let released = shared.released().load(Ordering::Acquire);
        advanced(released, released, released, capacity)?;
        let (mut head, mut tail, mut hurdle) = (released, released, None);
        loop {
            let word = shared.word(place(tail, capacity)).load(Ordering::Acquire);
            let step = match decode(word, tail, capacity)? {
                Record::Nothing => break,
                Record::Message { length } => record_size(length),
                Record::Skip { size } => size,
            };
            let skips_the_rest = word == skip_word(until_wrap(tail, capacity));
            if tail == released && skips_the_rest {
                (head, hurdle) = (tail.wrapping_add(step), Some(tail.wrapping_add(capacity)));
            }
            tail = tail.wrapping_add(step);
            // There is always a 0 after the last record, so the records never fill the ring.
            if tail.wrapping_sub(head) >= capacity {
                return Err(PeerViolation::IndexOutOfRange { theirs: tail, ours: head, capacity });
            }
        }
        // Whoever was here before may have died between S4 and S5.
        let (mask, longest, announced) = (capacity.wrapping_sub(1), longest(capacity), released);
        let (open, window) = (0, WINDOW);
        Ok(Self { capacity, mask, longest, tail, open, head, released, hurdle, window, announced })
    }

    /// As if `bytes` were what a cache holds.
    #[cfg(test)]
    pub(crate) fn begin_again_beyond(&mut self, bytes: u64) {
        (self.window, self.open) = (bytes, 0);
    }

    /// Says whether both sides run on one processor, as far as is known: then the ring begins again
    /// sooner. Only for a ring that [`depends_on_cpus`].
    pub fn set_on_one_cpu(&mut self, are: bool) {
        let window = if are { WINDOW_ON_ONE_CPU } else { WINDOW };
        if self.window != window {
            (self.window, self.open) = (window, 0);
        }
    }

    /// The longest message this lane takes.
    #[inline(always)]
    pub fn longest(&self) -> u64 {
        self.longest
    }

    /// S1, as far as no look at the receiver's word is needed: room for a message of at most `most`
    /// bytes, fewer than half of all that a `u64` counts. `None` too if it is longer than
    /// [`longest`](Self::longest).
    #[inline(always)]
    pub fn room_at_once(&self, most: u64) -> Option<Room> {
        let left = self.open.checked_sub(record_size(most))?;
        Some(Room { tail: self.tail, mask: self.mask, most, left })
    }

    /// S1. As [`room_at_once`](Self::room_at_once), after a look if
    /// need be. `None` while there is none.
    ///
    /// # Errors
    /// [`PeerViolation`] if the receiver released what it cannot have.
    #[inline]
    pub fn room(&mut self, most: u64, shared: &impl Shared) -> Result<Option<Room>, PeerViolation> {
        self.room_with::<Complete>(most, shared)
    }

    pub(crate) fn room_with<S: Steps>(
        &mut self,
        most: u64,
        shared: &impl Shared,
    ) -> Result<Option<Room>, PeerViolation> {
        if let Some(room) = self.room_at_once(most) {
            return Ok(Some(room));
        }
        let size = record_size(most);
        // Before the hurdle that this would leave.
        let here = place(self.tail, self.capacity);
        let may_begin_again = here >= self.window && size.wrapping_add(8) <= here && most <= self.longest;
        let mut reserved = self.reserve(size);
        // Around a hurdle only if it is still one.
        let around = reserved.is_some_and(|reserved| reserved.skip > 0) && self.hurdle.is_some();
        if reserved.is_none() || around || may_begin_again {
            // Acquire: pairs with the release in `Receiver::release`,
            // after which the receiver reads no more there.
            let now = shared.released().load(Ordering::Acquire);
            self.follow(now).inspect_err(|_| self.open = 0)?;
            reserved = self.reserve(size);
        }
        if may_begin_again && self.released == self.tail {
            let skip = until_wrap(self.tail, self.capacity);
            let start = self.tail.wrapping_add(skip);
            // Everything is free but the skip itself, which is written below.
            let hurdle = self.tail.wrapping_add(self.capacity);
            (self.head, self.hurdle) = (start, S::KEEP_HURDLE.then_some(hurdle));
            reserved = Some(Reserved { skip, start });
        }
        let Some(Reserved { skip, start }) = reserved else { return Ok(None) };
        if skip > 0 {
            Self::store_last::<S>(start & self.mask, here, skip_word(skip), shared);
            self.tail = start;
        }
        self.look_ahead(size);
        Ok(self.room_at_once(most))
    }

    /// Room by what is known, for a record of `size` bytes.
    fn reserve(&self, size: u64) -> Option<Reserved<u64>> {
        match self.hurdle_ahead() {
            Some(hurdle) => reserve_around(self.capacity, self.tail, self.head, hurdle, size),
            None => reserve(self.capacity, self.tail, self.head, size),
        }
    }

    fn hurdle_ahead(&self) -> Option<u64> {
        // Both in the lap that was begun again, or it was passed.
        self.hurdle.filter(|hurdle| self.tail.wrapping_sub(self.head) < hurdle.wrapping_sub(self.head))
    }

    /// The receiver has released up to `now`.
    fn follow(&mut self, now: u64) -> Result<(), PeerViolation> {
        let before = self.released;
        self.released = advanced(before, now, self.tail, self.capacity)?;
        if now.wrapping_sub(before) >= self.head.wrapping_sub(before) {
            (self.head, self.hurdle) = (now, None);
        }
        Ok(())
    }

    /// Finds out anew what is open, a record of `size` bytes at the least, for which there is room.
    fn look_ahead(&mut self, size: u64) {
        let here = self.tail & self.mask;
        let open = match self.hurdle_ahead() {
            // The word after must not be the hurdle either.
            Some(hurdle) => hurdle.wrapping_sub(self.tail).wrapping_sub(8),
            None => open(self.capacity, self.tail, self.head),
        };
        let open = open.min(record_size(self.longest));
        // There the ring may begin again.
        let until_look = if here < self.window { self.window.wrapping_sub(here) } else { self.window };
        self.open = open.min(until_look.max(size));
    }

    /// S3 and S4: publishes a message of `length` bytes, at most what
    /// was reserved, whose payload was written.
    #[inline(always)]
    pub fn publish(&mut self, room: &Room, length: u64, shared: &impl Shared) {
        self.publish_with::<Complete>(room, length, shared);
    }

    #[inline(always)]
    pub(crate) fn publish_with<S: Steps>(&mut self, room: &Room, length: u64, shared: &impl Shared) {
        let (length, tail) = self.advance(room, length);
        Self::store_last::<S>(tail & room.mask, room.start(), message_word(length), shared);
    }

    /// The sender's own part of publishing a message of `length` bytes, of which it returns as many
    /// as were reserved, and its new index.
    #[inline(always)]
    fn advance(&mut self, room: &Room, length: u64) -> (u64, u64) {
        let length = length.min(room.most);
        let tail = room.tail.wrapping_add(record_size(length));
        self.tail = tail;
        // Both sizes were subtracted from what was open, and the second is no larger.
        self.open = room.left.wrapping_add(record_size(room.most).wrapping_sub(record_size(length)));
        (length, tail)
    }

    /// S3 and S4: the word at `here`, with a 0 at the place `next` after its record.
    #[inline(always)]
    fn store_last<S: Steps>(next: u64, here: u64, word: u64, shared: &impl Shared) {
        let behind = shared.word(next);
        if S::CLEAR_BEFORE_PUBLISH {
            fault::point();
            behind.store(0, Ordering::Relaxed);
        }
        fault::point();
        // Release: pairs with R1 in `Receiver::next`.
        let order = if S::RELEASE_IN_PUBLISH { Ordering::Release } else { Ordering::Relaxed };
        shared.word(here).store(word, order);
        if !S::CLEAR_BEFORE_PUBLISH {
            behind.store(0, Ordering::Relaxed);
        }
    }

    /// The index after what was published last.
    #[inline(always)]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// How many bytes of records were published since the receiver was last told.
    #[inline(always)]
    pub fn unannounced(&self) -> u64 {
        self.tail.wrapping_sub(self.announced)
    }

    /// Must the receiver be woken that asked to be when `wanted` is committed? Asked after the
    /// fence of an announcement, of all that was published since the last.
    #[inline(always)]
    pub fn reaches(&self, wanted: u64) -> bool {
        passes(wanted, self.announced, self.tail)
    }

    /// The receiver was told.
    #[inline(always)]
    pub fn announced(&mut self) {
        self.announced = self.tail;
    }

    /// Where the sender wants to be woken that waits for room for `most` bytes.
    pub fn wanted(&self, most: u64) -> u64 {
        if self.released != self.head {
            // First of all the receiver must follow.
            return self.head.wrapping_sub(1);
        }
        room_wanted(self.capacity, self.tail, record_size(most))
    }

    /// Has the receiver released beyond `wanted`, or something that
    /// it cannot have? For the `ready` of a wait.
    #[inline]
    pub fn may_go_on(&self, wanted: u64, shared: &impl Shared) -> bool {
        let now = shared.released().load(Ordering::Acquire);
        now.wrapping_sub(self.released) > wanted.wrapping_sub(self.released)
    }
}

/// A message that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    payload: u64,
    length: u64,
    size: u64,
    /// Of what may be taken at once, so much is left behind it.
    left: u64,
}

impl Found {
    /// Where in the ring its payload begins. All of it lies in the ring, in one piece.
    #[inline(always)]
    pub fn payload(&self) -> u64 {
        self.payload
    }

    /// Its length, copied once.
    #[inline(always)]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The bytes of its record.
    #[inline(always)]
    pub fn record_size(&self) -> u64 {
        self.size
    }
}

/// What a receiver keeps at hand while it goes through a run of messages: after each word that it
/// acquires, what lies in memory would be loaded anew.
#[derive(Debug)]
pub struct Run {
    head: u64,
    mask: u64,
    /// So much is left before the ring ends.
    left: u64,
    /// As the receiver's own of the message found last.
    word: u64,
    length: u64,
    size: u64,
}

/// The receiver's private part.
#[derive(Debug)]
pub struct Receiver {
    capacity: u64,
    /// One less: what leaves a place of an index.
    mask: u64,
    /// How much may be held back.
    hold: u64,
    /// One more than the longest message; 0 when the sender has broken the protocol, so that no
    /// message is taken at once from then on.
    longer: u64,
    /// A record of at most so many bytes, whole units, may be taken at once: it ends before the
    /// ring does, and before so much is held back that the sender must be told.
    left: u64,
    head: u64,
    /// How many bytes of the way were skipped.
    skipped: u64,
    /// Of the message found last, but for those found at leisure: its
    /// word, its length, and the size of its record.
    last_word: u64,
    last_length: u64,
    last_size: u64,
    /// What the word `released` says.
    released: u64,
    /// Up to where the sender was told.
    announced: u64,
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
        let (mask, hold) = (capacity.wrapping_sub(1), may_hold_back(capacity));
        // Nothing is taken at once before the first look at leisure.
        let (longer, left) = (longest(capacity).wrapping_add(1), 0);
        // Whoever was here before may not have told of what it released last; to tell again does no harm.
        let announced = head.wrapping_sub(hold);
        let (last_word, last_length, last_size) = (message_word(0), 0, record_size(0));
        Ok(Self {
            capacity,
            mask,
            hold,
            longer,
            left,
            head,
            skipped: 0,
            last_word,
            last_length,
            last_size,
            released: head,
            announced,
        })
    }

    /// How many bytes of records it has received, from an arbitrary number on.
    #[inline(always)]
    pub fn received(&self) -> u64 {
        self.head.wrapping_sub(self.skipped)
    }

    /// R1 and R2 for nearly every message: the next one, if its word
    /// is there and says nothing else.
    ///
    /// Messages of a stream are mostly as long as those before. Where that is foreseen by the
    /// branch, the next word is loaded without waiting for this one, whose line may be on its
    /// way from another core. R1 acquires all the same.
    #[inline(always)]
    pub fn next_at_once(&mut self, shared: &impl Shared) -> Option<Found> {
        self.next_at_once_with::<Complete>(shared)
    }

    #[inline(always)]
    fn next_at_once_with<S: Steps>(&mut self, shared: &impl Shared) -> Option<Found> {
        let here = self.head & self.mask;
        let read = if S::ACQUIRE_IN_NEXT { Ordering::Acquire } else { Ordering::Relaxed };
        // Acquire: pairs with S4 in `Sender::publish`.
        let word = shared.word(here).load(read);
        if word != self.last_word && (word == 0 || !self.is_message(word)) {
            return None;
        }
        let (length, size) = (self.last_length, self.last_size);
        let left = self.left.checked_sub(size)?;
        Some(Found { payload: here.wrapping_add(8), length, size, left })
    }

    /// Does a record of another length than the last begin with `word`, a message's that is no
    /// longer than any? Then it is the last from now on. Not compiled into the caller, or both
    /// ways would become one that computes.
    #[inline(never)]
    fn is_message(&mut self, word: u64) -> bool {
        let length = length_at_once(word);
        let is_one = length < self.longer;
        if is_one {
            (self.last_word, self.last_length, self.last_size) = (word, length, record_size(length));
        }
        is_one
    }

    /// Is there a message as long as the last, as far as one look
    /// tells? For one who is about to begin a run.
    #[inline(always)]
    pub fn has_such(&self, shared: &impl Shared) -> bool {
        // Acquire: pairs with S4 in `Sender::publish`.
        self.longer > 0 && shared.word(self.head & self.mask).load(Ordering::Acquire) == self.last_word
    }

    /// For one who goes through many messages and holds back all of them. Nothing is taken at once
    /// outside the run before the next look at leisure, or the next release.
    #[inline(always)]
    pub fn run(&mut self) -> Run {
        self.left = 0;
        let left = if self.longer > 0 { until_wrap(self.head, self.capacity) } else { 0 };
        let (word, length, size) = (self.last_word, self.last_length, self.last_size);
        Run { head: self.head, mask: self.mask, left, word, length, size }
    }

    /// As [`next`](Self::next) and [`consume`](Self::consume).
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline(always)]
    pub fn next_of_run(
        &mut self,
        run: &mut Run,
        shared: &impl Shared,
    ) -> Result<Option<Found>, PeerViolation> {
        let here = run.head & run.mask;
        // Acquire: pairs with S4 in `Sender::publish`.
        let word = shared.word(here).load(Ordering::Acquire);
        if word != run.word {
            if word == 0 {
                return Ok(None);
            }
            if self.is_message(word) {
                (run.word, run.length, run.size) = (self.last_word, self.last_length, self.last_size);
            } else {
                // No record is so short that it would be taken below.
                run.left = 0;
            }
        }
        if let Some(left) = run.left.checked_sub(run.size) {
            (run.head, run.left) = (run.head.wrapping_add(run.size), left);
            self.head = run.head;
            return Ok(Some(Found {
                payload: here.wrapping_add(8),
                length: run.length,
                size: run.size,
                left: 0,
            }));
        }
        let found = self.next_and_consume(shared);
        *run = self.run();
        found
    }

    #[cold]
    #[inline(never)]
    fn next_and_consume(&mut self, shared: &impl Shared) -> Result<Option<Found>, PeerViolation> {
        // After a violation no word of the sender's counts any more.
        let found = if self.longer > 0 { self.next(shared)? } else { None };
        if let Some(found) = found {
            self.consume(found);
        }
        Ok(found)
    }

    /// Finds out anew how long a record may be that is taken at once.
    fn look_ahead(&mut self) {
        let until_release = self.hold.saturating_sub(self.head.wrapping_sub(self.announced));
        let left = until_release.min(until_wrap(self.head, self.capacity));
        self.left = if self.longer > 0 { left } else { 0 };
    }

    /// R1 and R2: the next message, if one was committed.
    ///
    /// # Errors
    /// [`PeerViolation`] if what the sender wrote is not a record in the ring.
    #[inline]
    pub fn next(&mut self, shared: &impl Shared) -> Result<Option<Found>, PeerViolation> {
        self.next_with::<Complete>(shared)
    }

    pub(crate) fn next_with<S: Steps>(
        &mut self,
        shared: &impl Shared,
    ) -> Result<Option<Found>, PeerViolation> {
        if let Some(found) = self.next_at_once_with::<S>(shared) {
            return Ok(Some(found));
        }
        // Who skips more finds that we look again.
        for _ in 0..=MOST_SKIPS {
            let here = place(self.head, self.capacity);
            let read = if S::ACQUIRE_IN_NEXT { Ordering::Acquire } else { Ordering::Relaxed };
            // Acquire: pairs with S4 in `Sender::publish`.
            let word = shared.word(here).load(read);
            match decode(word, self.head, self.capacity).inspect_err(|_| (self.longer, self.left) = (0, 0))? {
                Record::Nothing => return Ok(None),
                Record::Message { length } => {
                    self.look_ahead();
                    let size = record_size(length);
                    let left = self.left.saturating_sub(size);
                    // The record lies in the ring, hence no overflow.
                    return Ok(Some(Found { payload: here.wrapping_add(8), length, size, left }));
                }
                Record::Skip { size } => {
                    self.head = self.head.wrapping_add(size);
                    self.skipped = self.skipped.wrapping_add(size);
                    self.left = 0;
                }
            }
        }
        Ok(None)
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
                Ok(Record::Skip { size }) => size,
                Err(_) => return true,
            };
            at = at.wrapping_add(step);
        }
        true
    }

    /// How many messages are committed and how many bytes their
    /// records take, as far as what lies there are records.
    pub fn waiting(&self, shared: &impl Shared) -> (usize, u64) {
        records_from(self.head, self.capacity, shared)
    }

    /// The most that [`has_bytes`](Self::has_bytes) may be asked for: with more in the ring a
    /// sender may find no room for its next message, and wait in turn.
    pub fn most_bytes(&self) -> u64 {
        self.capacity >> 2
    }

    /// Where the receiver wants to be woken that waits for `bytes` bytes of records.
    #[inline]
    pub fn wanted(&self, bytes: u64) -> u64 {
        self.head.wrapping_add(bytes.max(1)).wrapping_sub(1)
    }

    /// R4: goes on after the message that `next` found. It stays the
    /// receiver's as long as nothing is released.
    #[inline(always)]
    pub fn consume(&mut self, found: Found) {
        self.head = self.head.wrapping_add(found.size);
        self.left = found.left;
    }

    /// Is so much consumed that the sender should be told now?
    #[inline(always)]
    pub fn must_release(&self) -> bool {
        self.head.wrapping_sub(self.announced) >= self.hold
    }

    /// Was all that is consumed released?
    #[inline(always)]
    pub fn has_released(&self) -> bool {
        self.released == self.head
    }

    /// Is anything consumed that the sender was not told of?
    #[inline(always)]
    pub fn can_release(&self) -> bool {
        self.head != self.announced
    }

    /// R5: lets the sender write where the receiver has read. Returns up to where it was told
    /// before, and what to tell it now.
    #[inline]
    pub fn release(&mut self, shared: &impl Shared) -> (u64, u64) {
        self.release_with::<Complete>(shared)
    }

    #[inline(always)]
    pub(crate) fn release_with<S: Steps>(&mut self, shared: &impl Shared) -> (u64, u64) {
        let before = self.announced;
        self.release_unannounced_with::<S>(shared);
        self.announced = self.head;
        self.look_ahead();
        (before, self.head)
    }

    /// R5 without the announcement, for a receiver that has received
    /// everything: its successor begins here.
    #[inline(always)]
    pub fn release_unannounced(&mut self, shared: &impl Shared) {
        self.release_unannounced_with::<Complete>(shared);
    }

    #[inline(always)]
    pub(crate) fn release_unannounced_with<S: Steps>(&mut self, shared: &impl Shared) {
        if self.released == self.head {
            return;
        }
        let order = if S::RELEASE_IN_RELEASE { Ordering::Release } else { Ordering::Relaxed };
        fault::point();
        // Release: pairs with the look in `Sender::room`: our reads of the payload come before its writes.
        shared.released().store(self.head, order);
        self.released = self.head;
    }
}

/// Which steps are taken. Everything outside the tests takes [`Complete`]; the tests leave out one
/// at a time and show that the model checker notices.
pub(crate) trait Steps {
    const RELEASE_IN_PUBLISH: bool = true;
    const CLEAR_BEFORE_PUBLISH: bool = true;
    const ACQUIRE_IN_NEXT: bool = true;
    const RELEASE_IN_RELEASE: bool = true;
    const KEEP_HURDLE: bool = true;
}

/// Every step.
pub(crate) struct Complete;
impl Steps for Complete {}

/// How often [`occupancy`] looks again at a ring whose receiver went on meanwhile.
const LOOKS: u32 = 4;

/// What [`Receiver::waiting`] tells, for one who takes no part: how many messages lie in a ring,
/// and the bytes their records take.
///
/// It is of one moment if the receiver releases nothing meanwhile,
/// which is waited for in up to four looks. Of a ring that never rests
/// it is what the last of them found, as far as there were records.
pub fn occupancy(capacity: Capacity, shared: &impl Shared) -> (usize, u64) {
    let mut from = shared.released().load(Ordering::Acquire);
    let mut found = (0, 0);
    if advanced(from, from, from, capacity.get()).is_err() {
        return found;
    }
    for _ in 0..LOOKS {
        found = records_from(from, capacity.get(), shared);
        // What is not released is not written over: if it is the same as before, all between were records.
        // Their loads acquire, so that this one is not made before them.
        let now = shared.released().load(Ordering::Acquire);
        if now == from || advanced(now, now, now, capacity.get()).is_err() {
            break;
        }
        from = now;
    }
    found
}

fn records_from(head: u64, capacity: u64, shared: &impl Shared) -> (usize, u64) {
    let (mut at, mut count, mut bytes) = (head, 0_usize, 0_u64);
    // A ring full of lies has at most as many, and one begun again not quite two laps.
    while bytes < capacity && at.wrapping_sub(head) < capacity.wrapping_mul(2) {
        let word = shared.word(place(at, capacity)).load(Ordering::Acquire);
        let step = match decode(word, at, capacity) {
            Ok(Record::Message { length }) => {
                count = count.saturating_add(1);
                bytes = bytes.saturating_add(record_size(length));
                record_size(length)
            }
            Ok(Record::Skip { size }) => size,
            Ok(Record::Nothing) | Err(_) => break,
        };
        at = at.wrapping_add(step);
    }
    (count, bytes)
}

#[cfg(all(test, not(loom)))]
mod tests;
