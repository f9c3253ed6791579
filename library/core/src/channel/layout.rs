// SPDX-License-Identifier: MIT OR Apache-2.0
//! What lies where in a payload that holds lanes.
//!
//! | offset in the payload | size | what | written by |
//! |---:|---:|---|---|
//! | 0 | 128 | [`Directory`] | the creator, before anybody else sees the mapping |
//! | 128 | 384 × lanes | [`Control`] of each lane | its two sides |
//! | next multiple of 4096 | stride × lanes | rings; the stride is the capacity, rounded up to 4096 | each lane's sender |
//!
//! The mapping has one bell for each receiver, then one for each lane's sender. Lane `i` belongs to
//! receiver `i modulo receivers`.
//!
//! The log of a broadcast is a memory of its own, which its subscribers map read-only:
//!
//! | offset | size | what | written by |
//! |---:|---:|---|---|
//! | 0 | 256 | [`LogHeader`] | the publisher |
//! | 4096 | capacity | ring | the publisher |
//!
//! What a subscriber writes, its cursor, is the `released` of a
//! lane's control, whose ring is not used.
//!
//! All bytes zero is a lane nobody has used. The ring itself is described in [`lane`](super::lane).

use super::arithmetic;
use crate::index::Capacity;
use crate::layout::{LayoutError, MAX_BELLS, MOST_HOLDERS, PAGE};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::violation::PeerViolation;
use core::mem::{offset_of, size_of};

/// `DBLANES` and a zero byte.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"DBLANES\0");
/// Both sides must have the same.
pub const VERSION: u32 = 3;
/// The smallest ring, in bytes: it takes messages of up to 16.
pub const SMALLEST_RING: u64 = Capacity::SMALLEST.get();
/// The largest ring, in bytes.
pub const LARGEST_RING: u64 = 1 << 40;

/// The first bytes of the payload.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Directory {
    magic: AtomicU64,
    version: AtomicU32,
    lanes: AtomicU32,
    capacity: AtomicU64,
    receivers: AtomicU32,
    namespace: AtomicU32,
    reserved: [AtomicU32; 24],
}

/// What the two sides of a lane share beside the ring. Each line has one writer.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Control {
    /// The index up to which the receiver has released the ring.
    pub released: AtomicU64,
    /// The index at which the receiver wants to be woken.
    pub message_wanted: AtomicU64,
    /// Can the receiver run a fence on the sender's processor (see
    /// [`wake`](crate::wake))? 0 if it cannot.
    pub can_run_barrier: AtomicU64,
    /// On which processor the receiver last released in a ring that may begin again on less there:
    /// its number, and one; 0 where nobody said. A hint, which nothing but speed depends on.
    pub receiver_cpu: AtomicU32,
    reserved_receiver_half: AtomicU32,
    reserved_receiver: [AtomicU64; 12],
    /// The index at which the sender wants to be woken.
    pub room_wanted: AtomicU64,
    /// How many messages the sender dropped because there was no room.
    pub dropped: AtomicU64,
    /// Does the sender leave out its fence? Not 0 if it does. What is
    /// counted for a dead one is taken back so.
    pub unfenced: AtomicU64,
    reserved_sender: [AtomicU64; 13],
    /// Who sends; see [`Attachment`].
    pub sender: AtomicU32,
    /// Who receives.
    pub receiver: AtomicU32,
    reserved_attachment: [AtomicU32; 30],
}

const _: () = {
    assert!(size_of::<Directory>() == 128);
    assert!(offset_of!(Directory, magic) == 0);
    assert!(offset_of!(Directory, version) == 8);
    assert!(offset_of!(Directory, lanes) == 12);
    assert!(offset_of!(Directory, capacity) == 16);
    assert!(offset_of!(Directory, receivers) == 24);
    assert!(offset_of!(Directory, namespace) == 28);

    assert!(size_of::<LogHeader>() == 256);
    assert!(offset_of!(LogHeader, magic) == 0);
    assert!(offset_of!(LogHeader, version) == 8);
    assert!(offset_of!(LogHeader, capacity) == 16);
    assert!(offset_of!(LogHeader, tail) == 128);
    assert!(offset_of!(LogHeader, floor) == 136);

    assert!(size_of::<Control>() == 384);
    assert!(offset_of!(Control, released) == 0);
    assert!(offset_of!(Control, message_wanted) == 8);
    assert!(offset_of!(Control, can_run_barrier) == 16);
    assert!(offset_of!(Control, receiver_cpu) == 24);
    assert!(offset_of!(Control, room_wanted) == 128);
    assert!(offset_of!(Control, dropped) == 136);
    assert!(offset_of!(Control, unfenced) == 144);
    assert!(offset_of!(Control, sender) == 256);
    assert!(offset_of!(Control, receiver) == 260);
};

/// The first bytes of a log.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct LogHeader {
    magic: AtomicU64,
    version: AtomicU32,
    reserved: AtomicU32,
    capacity: AtomicU64,
    reserved_header: [AtomicU64; 13],
    /// The index up to which messages were published.
    pub tail: AtomicU64,
    /// The index below which messages may be overwritten.
    pub floor: AtomicU64,
    reserved_indices: [AtomicU64; 14],
}

/// `DBLOG` and zero bytes.
pub const LOG_MAGIC: u64 = u64::from_ne_bytes(*b"DBLOG\0\0\0");
/// Where the ring of a log lies.
pub const LOG_RING: u64 = PAGE;

impl LogHeader {
    /// Publisher: writes the header of fresh, zeroed memory nobody else has yet.
    pub fn write(&self, capacity: Capacity) {
        self.version.store(VERSION, Ordering::Relaxed);
        self.capacity.store(capacity.get(), Ordering::Relaxed);
        self.magic.store(LOG_MAGIC, Ordering::Relaxed);
    }

    /// Subscriber: copies the header out once and checks the copy
    /// against the size the file really has.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn read(&self, file_size: u64) -> Result<Capacity, LayoutError> {
        let bad = |field, value| LayoutError::Violation(PeerViolation::BadValue { field, value });
        let magic = self.magic.load(Ordering::Relaxed);
        if magic != LOG_MAGIC {
            return Err(bad("log.magic", magic));
        }
        let version = self.version.load(Ordering::Relaxed);
        if version != VERSION {
            return Err(LayoutError::Version { theirs: version, ours: VERSION });
        }
        let value = self.capacity.load(Ordering::Relaxed);
        let capacity = Capacity::new(value)
            .filter(|capacity| (SMALLEST_RING..=LARGEST_RING).contains(&capacity.get()))
            .ok_or_else(|| bad("log.capacity", value))?;
        let needed = LOG_RING.saturating_add(capacity.get());
        if needed > file_size {
            return Err(LayoutError::Violation(PeerViolation::TooSmall { size: file_size, needed }));
        }
        Ok(capacity)
    }
}

/// Who is at one end of a lane, as its word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// Nobody has been there yet.
    Never,
    /// The process that takes waiter slots by this number.
    Holder(u32),
    /// The process with this number was there and has left in order.
    Left(u32),
    /// The process with this number was there when it died, as its host found out.
    Died(u32),
}

const LEFT: u32 = 1 << 31;
/// Beside [`LEFT`]: not in order.
const DIED: u32 = 1 << 30;
const _: () = assert!(MOST_HOLDERS == DIED);

impl Attachment {
    /// Takes the word apart.
    pub const fn of(word: u32) -> Self {
        match word {
            0 => Self::Never,
            word if word & LEFT == 0 => Self::Holder(word),
            word if word & DIED == 0 => Self::Left(word & !LEFT),
            word => Self::Died(word & !(LEFT | DIED)),
        }
    }

    /// The word of one who is there. `holder` is neither 0 nor [`MOST_HOLDERS`] or above.
    pub const fn word(holder: u32) -> u32 {
        holder & !(LEFT | DIED)
    }

    /// The word of one who left.
    pub const fn left(holder: u32) -> u32 {
        Self::word(holder) | LEFT
    }

    /// The word of one who died there.
    pub const fn died(holder: u32) -> u32 {
        Self::word(holder) | LEFT | DIED
    }
}

/// How many lanes of which size, for how many receivers: what the creator decided, or what a reader
/// copied out of a directory and found to be sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    lanes: u32,
    receivers: u32,
    capacity: Capacity,
}

impl Lanes {
    /// `lanes` lanes with rings of at least `capacity` bytes (rounded up to a power of two), shared
    /// out among `receivers`. `None` if that is more than fits a mapping, or nothing.
    pub const fn new(lanes: u32, receivers: u32, capacity: u64) -> Option<Self> {
        if capacity > LARGEST_RING || lanes == 0 || receivers == 0 || receivers > lanes {
            return None;
        }
        let least = if capacity < SMALLEST_RING { SMALLEST_RING } else { capacity };
        match (lanes.checked_add(receivers), Capacity::new(least.next_power_of_two())) {
            (Some(bells), Some(capacity)) if bells <= MAX_BELLS => Some(Self { lanes, receivers, capacity }),
            _ => None,
        }
    }

    /// How many lanes.
    pub const fn lanes(&self) -> u32 {
        self.lanes
    }

    /// How many receivers.
    pub const fn receivers(&self) -> u32 {
        self.receivers
    }

    /// The size of each ring.
    pub const fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// The longest message of each lane.
    pub fn longest(&self) -> u64 {
        arithmetic::longest(self.capacity.get())
    }

    /// How many bells the mapping needs.
    pub const fn bells(&self) -> u32 {
        // Both were checked together against `MAX_BELLS`.
        self.lanes.wrapping_add(self.receivers)
    }

    /// The bell at which the receiver of lane `lane` waits for messages.
    pub fn message_bell(&self, lane: u32) -> u32 {
        lane.checked_rem(self.receivers).unwrap_or(0)
    }

    /// The bell at which the sender of lane `lane` waits for room.
    pub const fn room_bell(&self, lane: u32) -> u32 {
        self.receivers.wrapping_add(lane)
    }

    const fn rings(&self) -> u64 {
        // At most 1024 × 384.
        let controls = (self.lanes as u64).wrapping_mul(size_of::<Control>() as u64);
        controls.wrapping_add(size_of::<Directory>() as u64).next_multiple_of(PAGE)
    }

    const fn stride(&self) -> u64 {
        self.capacity.get().next_multiple_of(PAGE)
    }

    /// Where in the payload the control of lane `lane` lies.
    pub const fn control_offset(&self, lane: u32) -> u64 {
        (lane as u64).wrapping_mul(size_of::<Control>() as u64).wrapping_add(size_of::<Directory>() as u64)
    }

    /// Where in the payload the ring of lane `lane` lies.
    pub const fn ring_offset(&self, lane: u32) -> u64 {
        // At most 2^10 rings of 2^40 bytes.
        (lane as u64).wrapping_mul(self.stride()).wrapping_add(self.rings())
    }

    /// The bytes the payload needs.
    pub const fn payload_size(&self) -> u64 {
        self.ring_offset(self.lanes)
    }
}

impl Directory {
    /// Creator: writes the directory of a fresh, zeroed payload nobody else has yet. If `namespace`
    /// is not 0, it is the PID namespace by whose processes' numbers ends are taken.
    pub fn write(&self, lanes: &Lanes, namespace: u32) {
        self.namespace.store(namespace, Ordering::Relaxed);
        self.version.store(VERSION, Ordering::Relaxed);
        self.lanes.store(lanes.lanes, Ordering::Relaxed);
        self.capacity.store(lanes.capacity.get(), Ordering::Relaxed);
        self.receivers.store(lanes.receivers, Ordering::Relaxed);
        self.magic.store(MAGIC, Ordering::Relaxed);
    }

    /// The PID namespace by whose processes' numbers ends are taken;
    /// 0 if they are taken by numbers that were given.
    pub fn namespace(&self) -> u32 {
        self.namespace.load(Ordering::Relaxed)
    }

    /// Everybody else: copies the directory out once and checks the
    /// copy against the mapping it is in.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn read(&self, bells: u32, payload_size: u64) -> Result<Lanes, LayoutError> {
        let bad = |field, value| LayoutError::Violation(PeerViolation::BadValue { field, value });
        let magic = self.magic.load(Ordering::Relaxed);
        if magic != MAGIC {
            return Err(bad("lanes.magic", magic));
        }
        let version = self.version.load(Ordering::Relaxed);
        if version != VERSION {
            return Err(LayoutError::Version { theirs: version, ours: VERSION });
        }
        let count = self.lanes.load(Ordering::Relaxed);
        let receivers = self.receivers.load(Ordering::Relaxed);
        let capacity = self.capacity.load(Ordering::Relaxed);
        let lanes = Lanes::new(count, receivers, capacity)
            .filter(|lanes| lanes.capacity.get() == capacity)
            .ok_or_else(|| bad("lanes.capacity", capacity))?;
        if lanes.bells() > bells {
            return Err(bad("lanes.lanes", count.into()));
        }
        if lanes.payload_size() > payload_size {
            let violation = PeerViolation::TooSmall { size: payload_size, needed: lanes.payload_size() };
            return Err(LayoutError::Violation(violation));
        }
        Ok(lanes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::{assert_file_says, assert_says};
    use proptest::prelude::*;
    use std::format;

    #[test]
    fn the_book_prints_the_version_and_the_bits_of_an_ends_word() {
        let says = |sentence: &str| assert_file_says("book/wake-protocol.md", sentence);
        let (never, left, died) = (
            (0..).find(|word| Attachment::of(*word) == Attachment::Never).unwrap(),
            Attachment::left(0).trailing_zeros(),
            (Attachment::died(0) & !Attachment::left(0)).trailing_zeros(),
        );
        says(&format!(
            "The word of an end is {never} where it was never held, else its holder's number; bit \
             {left}: left; bits {left} and {died}: died. This is version {VERSION} of the \
             channels' layout.",
        ));
        let capacity = 1_u64 << 20;
        assert_eq!(arithmetic::may_hold_back(capacity), capacity / 8);
        says("A receiver announces room by eighths of the ring");
    }

    #[test]
    fn the_tables_above_say_what_the_compiler_gives() {
        let says = |row: &str| assert_says("layout.rs", include_str!("layout.rs"), row);
        let one = Lanes::new(1, 1, 0).unwrap();
        says(&format!("//! | 0 | {} | [`Directory`] |", size_of::<Directory>()));
        says(&format!(
            "//! | {} | {} × lanes | [`Control`] of each lane |",
            one.control_offset(0),
            size_of::<Control>()
        ));
        says(&format!(
            "//! | next multiple of {PAGE} | stride × lanes | rings; the stride is the capacity, \
             rounded up to {PAGE} |"
        ));
        assert_eq!((one.ring_offset(0), one.stride()), (PAGE, PAGE));
        says(&format!("//! | 0 | {} | [`LogHeader`] |", size_of::<LogHeader>()));
        says(&format!("//! | {LOG_RING} | capacity | ring |"));
    }

    #[test]
    fn the_book_prints_the_same_offsets() {
        let says = |row: &str| assert_file_says("book/channels.md", row);
        says(&format!(
            "| {} | directory: magic at {}, version at {}, lanes at {}, capacity at {}, receivers at {} |",
            0,
            offset_of!(Directory, magic),
            offset_of!(Directory, version),
            offset_of!(Directory, lanes),
            offset_of!(Directory, capacity),
            offset_of!(Directory, receivers),
        ));
        let lanes = Lanes::new(2, 1, 0).unwrap();
        let (first, second) = (lanes.control_offset(0), lanes.control_offset(1));
        says(&format!(
            "| {first} + {}·i | lane i: `released` at {}, `message_wanted` at {}, the receiver's \
             processor (or 0) at {}; `room_wanted` at {}, `dropped` at {}; who sends at {}, who \
             receives at {} |",
            second - first,
            offset_of!(Control, released),
            offset_of!(Control, message_wanted),
            offset_of!(Control, receiver_cpu),
            offset_of!(Control, room_wanted),
            offset_of!(Control, dropped),
            offset_of!(Control, sender),
            offset_of!(Control, receiver),
        ));
        says(&format!("| next multiple of {PAGE} | the rings, each at a multiple of {PAGE} |"));
    }

    fn directory() -> Directory {
        // SAFETY: every field is an atomic integer, for which all bytes zero is a value.
        // JUSTIFICATION: this is the state in which a fresh payload is found.
        unsafe { core::mem::zeroed() }
    }

    #[test]
    fn what_was_written_is_read_back() {
        let directory = directory();
        let lanes = Lanes::new(3, 1, 5000).unwrap();
        directory.write(&lanes, 0);
        assert_eq!(directory.read(4, lanes.payload_size()), Ok(lanes));
        assert_eq!(lanes.capacity().get(), 8192);
        assert_eq!(lanes.payload_size(), 4096 + 3 * 8192);
    }

    #[test]
    fn lanes_of_another_release_are_told_apart_from_a_lie() {
        let directory = directory();
        let lanes = Lanes::new(1, 1, 64).unwrap();
        directory.write(&lanes, 0);
        directory.version.store(1, Ordering::Relaxed);
        let refused = directory.read(2, lanes.payload_size());
        assert_eq!(refused, Err(LayoutError::Version { theirs: 1, ours: VERSION }));
    }

    #[test]
    fn who_left_is_told_apart_from_who_died_and_neither_from_nobody() {
        for holder in [1, 2, MOST_HOLDERS - 1] {
            assert_eq!(Attachment::of(Attachment::word(holder)), Attachment::Holder(holder));
            assert_eq!(Attachment::of(Attachment::left(holder)), Attachment::Left(holder));
            assert_eq!(Attachment::of(Attachment::died(holder)), Attachment::Died(holder));
        }
        assert_eq!(Attachment::of(0), Attachment::Never);
    }

    #[test]
    fn lanes_without_their_bells_or_their_memory_are_refused() {
        let directory = directory();
        let lanes = Lanes::new(2, 2, 4096).unwrap();
        directory.write(&lanes, 0);
        assert!(directory.read(3, lanes.payload_size()).is_err());
        assert!(directory.read(4, lanes.payload_size() - 1).is_err());
    }

    proptest! {
        /// Whatever bytes a hostile creator leaves, accepted lanes lie apart and within the payload.
        #[test]
        fn accepted_lanes_lie_within_the_payload(
            count: u32, receivers: u32, capacity: u64, bits in 0_u32..64, payload: u64, bells: u32, sound: bool
        ) {
            let directory = directory();
            directory.magic.store(MAGIC, Ordering::Relaxed);
            directory.version.store(VERSION, Ordering::Relaxed);
            let (count, receivers, capacity) =
                if sound { (count % 600, receivers % 600, 1 << bits) } else { (count, receivers, capacity) };
            directory.lanes.store(count, Ordering::Relaxed);
            directory.receivers.store(receivers, Ordering::Relaxed);
            directory.capacity.store(capacity, Ordering::Relaxed);
            if let Ok(lanes) = directory.read(bells, payload) {
                prop_assert!(lanes.bells() <= bells);
                for lane in [0, lanes.lanes() - 1] {
                    prop_assert!(lanes.control_offset(lane) + 384 <= lanes.ring_offset(0));
                    prop_assert!(lanes.ring_offset(lane) + lanes.capacity().get() <= payload);
                    prop_assert!(lanes.message_bell(lane) < lanes.receivers());
                    prop_assert!(lanes.room_bell(lane) < bells && lanes.room_bell(lane) >= lanes.receivers());
                }
            }
        }
    }
}
