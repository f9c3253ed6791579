// SPDX-License-Identifier: MIT OR Apache-2.0
//! What lies where in a mapping that two processes share.
//!
//! | offset | size | what | written by |
//! |---:|---:|---|---|
//! | 0 | 128 | [`Header`] | the creator, before anybody else sees the mapping |
//! | 128 | 256 × bells | [`BellRecord`]s | everybody |
//! | [`Plan::payload_offset`] | [`Plan::payload_size`] | whatever the user of the mapping keeps there | by agreement |
//!
//! The payload starts at a multiple of 4096, so that it can be mapped with other rights than the
//! rest. Integers are in the byte order of the machine: a mapping never leaves it.
//!
//! **Version.** [`MAJOR`] changes when an old reader would misread; both sides
//! must have the same. [`MINOR`] grows when something was added where an old
//! reader does not look. A **feature** is a bit in [`Plan::features`]; a reader
//! that does not know a set bit among [`REQUIRED_FEATURES`] must not go on.

use crate::fault;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::violation::PeerViolation;
use crate::wake::{WAITER_SLOTS, WakeWords};
use core::mem::{align_of, offset_of, size_of};

/// `DOORBELL` as bytes in memory.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"DOORBELL");
/// Both sides must have the same.
pub const MAJOR: u32 = 3;
/// May differ between the sides.
pub const MINOR: u32 = 0;
/// Where the payload may start and how its size is rounded.
pub const PAGE: u64 = 4096;
/// The most bells one mapping can have.
pub const MAX_BELLS: u32 = 1024;

/// The number by which the maker of a mapping takes waiter slots and ends of lanes.
pub const MAKER: u32 = 1;
/// The first number of those who join.
pub const FIRST_HOLDER: u32 = MAKER + 1;
/// All numbers are below this one: what a word says beside a number has the bits above.
pub const MOST_HOLDERS: u32 = 1 << 30;

/// The low 32 feature bits: a reader that does not know one of them must not go on.
pub const REQUIRED_FEATURES: u64 = 0xffff_ffff;
/// The payload holds channels (their layout has its own version).
pub const FEATURE_CHANNELS: u64 = 1 << 1;
/// Every feature this version knows.
pub const KNOWN_FEATURES: u64 = FEATURE_CHANNELS;

/// Distance between things that different sides write: two cache
/// lines, for the adjacent-line prefetcher of x86 pulls lines in
/// pairs (Intel Optimization Reference Manual, "Spatial Prefetcher").
pub const LINES: usize = 128;

/// The first bytes of every mapping.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Header {
    magic: AtomicU64,
    major: AtomicU32,
    minor: AtomicU32,
    features: AtomicU64,
    size: AtomicU64,
    bells: AtomicU32,
    /// How many numbers were given to those who joined.
    holders: AtomicU32,
    payload_offset: AtomicU64,
    payload_size: AtomicU64,
    reserved: [AtomicU64; 8],
}

/// One bell in shared memory. All bytes zero is a bell that was never rung.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct BellRecord {
    /// How often it was rung, modulo 2³². Ringers add, waiters read.
    pub rung: AtomicU32,
    reserved_rung_line: [AtomicU32; 31],
    /// The words of the wake protocol.
    pub wake: WakeWords,
    /// The CPU on which a ringer last had to wake somebody, plus one; 0 if never. A hint: it
    /// decides whether spinning can pay, never whether a wake-up comes.
    pub ringer_cpu: AtomicU32,
    reserved_wake_line: [AtomicU32; 12],
    /// Who holds the waiter slots: 0 for nobody, else a number its holder chose.
    pub slot_holders: [AtomicU32; WAITER_SLOTS as usize],
    reserved_slots: [AtomicU32; WAITER_SLOTS as usize],
}

const _: () = {
    assert!(size_of::<Header>() == 128);
    assert!(offset_of!(Header, magic) == 0);
    assert!(offset_of!(Header, major) == 8);
    assert!(offset_of!(Header, minor) == 12);
    assert!(offset_of!(Header, features) == 16);
    assert!(offset_of!(Header, size) == 24);
    assert!(offset_of!(Header, bells) == 32);
    assert!(offset_of!(Header, holders) == 36);
    assert!(offset_of!(Header, payload_offset) == 40);
    assert!(offset_of!(Header, payload_size) == 48);

    assert!(size_of::<BellRecord>() == 256);
    assert!(align_of::<BellRecord>() == LINES);
    assert!(offset_of!(BellRecord, rung) == 0);
    assert!(offset_of!(BellRecord, wake) == 128);
    assert!(size_of::<WakeWords>() == 12);
    assert!(offset_of!(BellRecord, ringer_cpu) == 140);
    assert!(offset_of!(BellRecord, slot_holders) == 192);
    assert!(bell_offset(0) == 128 && bell_offset(2) == 128 + 2 * 256);
};

/// What the creator decided, or what a reader copied out of a header and found to be sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Feature bits in use.
    pub features: u64,
    /// How many bells there are.
    pub bells: u32,
    /// Where the payload starts.
    pub payload_offset: u64,
    /// How long it is.
    pub payload_size: u64,
}

/// Why a mapping cannot be used although its creator may be honest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutError {
    /// The creator's layout is another.
    Version {
        /// The creator's [`MAJOR`].
        theirs: u32,
        /// Ours.
        ours: u32,
    },
    /// The creator uses something this version does not know.
    Features {
        /// The bits we do not know.
        unknown: u64,
    },
    /// More bells or a longer payload than a mapping can have.
    TooLarge {
        /// Bells asked for.
        bells: u64,
        /// Payload bytes asked for.
        payload: u64,
    },
    /// The header contradicts itself or the file it is in.
    Violation(PeerViolation),
}

impl core::fmt::Display for LayoutError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            Self::Version { theirs, ours } => write!(
                f,
                "the other side lays out shared memory in version {theirs}, this side in version \
                 {ours}; use the same release on both"
            ),
            Self::Features { unknown } => write!(
                f,
                "the other side needs features {unknown:#x} that this release does not know; use a \
                 newer release here"
            ),
            Self::TooLarge { bells, payload } => write!(
                f,
                "{bells} bells and {payload} payload bytes do not fit one mapping (at most \
                 {MAX_BELLS} bells, 2^62 bytes)"
            ),
            Self::Violation(violation) => violation.fmt(f),
        }
    }
}

impl core::error::Error for LayoutError {}

impl Plan {
    /// Places `bells` bells and `payload_size` bytes, in this release's layout.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`].
    pub const fn new(bells: u32, payload_size: u64, features: u64) -> Result<Self, LayoutError> {
        if bells > MAX_BELLS || payload_size > 1 << 62 {
            return Err(LayoutError::TooLarge { bells: bells as u64, payload: payload_size });
        }
        let payload_offset = match bell_offset(bells).checked_next_multiple_of(PAGE) {
            Some(offset) => offset,
            None => return Err(LayoutError::TooLarge { bells: bells as u64, payload: payload_size }),
        };
        Ok(Self { features, bells, payload_offset, payload_size })
    }

    /// The bytes the whole mapping needs, a multiple of [`PAGE`].
    pub const fn size(&self) -> u64 {
        // Both numbers were checked against bounds far below the range when the plan was made.
        self.payload_offset.saturating_add(self.payload_size).next_multiple_of(PAGE)
    }
}

/// Where bell number `index` lies.
pub const fn bell_offset(index: u32) -> u64 {
    // u32::MAX × 512 + 128 fits u64.
    (index as u64).wrapping_mul(size_of::<BellRecord>() as u64).wrapping_add(size_of::<Header>() as u64)
}

impl Header {
    /// Creator: writes the header of a fresh, zeroed mapping nobody else has yet.
    pub fn write(&self, plan: &Plan) {
        self.major.store(MAJOR, Ordering::Relaxed);
        self.minor.store(MINOR, Ordering::Relaxed);
        self.features.store(plan.features, Ordering::Relaxed);
        self.size.store(plan.size(), Ordering::Relaxed);
        self.bells.store(plan.bells, Ordering::Relaxed);
        self.payload_offset.store(plan.payload_offset, Ordering::Relaxed);
        self.payload_size.store(plan.payload_size, Ordering::Relaxed);
        self.magic.store(MAGIC, Ordering::Relaxed);
    }

    /// A number for one who joins: another one for each, whichever of the
    /// processes that share the mapping hands it out. From [`FIRST_HOLDER`]
    /// to below [`MOST_HOLDERS`], whatever a hostile peer wrote.
    pub fn next_holder(&self) -> u32 {
        fault::point();
        let given = self.holders.fetch_add(1, Ordering::Relaxed);
        // 2³⁰ rendezvous later the first number is free again.
        // Neither can wrap: the remainder is below the divisor.
        (given % (MOST_HOLDERS - FIRST_HOLDER)).wrapping_add(FIRST_HOLDER)
    }

    /// Everybody else: copies the header out once and checks the copy against the size the file
    /// really has. Of the header only [`next_holder`](Self::next_holder) is used afterwards.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn read(&self, file_size: u64) -> Result<Plan, LayoutError> {
        let bad = |field, value| LayoutError::Violation(PeerViolation::BadValue { field, value });
        let magic = self.magic.load(Ordering::Relaxed);
        if magic != MAGIC {
            return Err(bad("magic", magic));
        }
        let major = self.major.load(Ordering::Relaxed);
        if major != MAJOR {
            return Err(LayoutError::Version { theirs: major, ours: MAJOR });
        }
        let features = self.features.load(Ordering::Relaxed);
        let unknown = features & REQUIRED_FEATURES & !KNOWN_FEATURES;
        if unknown != 0 {
            return Err(LayoutError::Features { unknown });
        }
        let bells = self.bells.load(Ordering::Relaxed);
        let payload_size = self.payload_size.load(Ordering::Relaxed);
        let plan = Plan::new(bells, payload_size, features)?;
        let payload_offset = self.payload_offset.load(Ordering::Relaxed);
        if payload_offset != plan.payload_offset {
            return Err(bad("payload_offset", payload_offset));
        }
        let size = self.size.load(Ordering::Relaxed);
        if size != plan.size() {
            return Err(bad("size", size));
        }
        if file_size < size {
            return Err(LayoutError::Violation(PeerViolation::TooSmall { size: file_size, needed: size }));
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::{assert_file_says, assert_says};
    use proptest::prelude::*;
    use std::format;

    #[test]
    fn the_book_prints_the_offsets_and_sizes_that_the_compiler_gives() {
        let says = |row: &str| assert_file_says("book/wake-protocol.md", row);
        says(&format!(
            "| 0 | header, {} bytes: magic at {}, major at {}, minor at {}, features at {}, size \
             at {}, number of bells at {}, numbers given to joiners at {}, payload offset at {}, \
             payload size at {} |",
            size_of::<Header>(),
            offset_of!(Header, magic),
            offset_of!(Header, major),
            offset_of!(Header, minor),
            offset_of!(Header, features),
            offset_of!(Header, size),
            offset_of!(Header, bells),
            offset_of!(Header, holders),
            offset_of!(Header, payload_offset),
            offset_of!(Header, payload_size),
        ));
        let wake = offset_of!(BellRecord, wake);
        says(&format!(
            "| {} + {}·i | bell i: `rung` at {}; `waiters` at {}, `epoch` at {}, `unfenced` at {}, \
             `ringer_cpu` at {}; {WAITER_SLOTS} waiter slot holders at {} |",
            bell_offset(0),
            bell_offset(1) - bell_offset(0),
            offset_of!(BellRecord, rung),
            wake + offset_of!(WakeWords, waiters),
            wake + offset_of!(WakeWords, epoch),
            offset_of!(BellRecord, wake) + 8,
            offset_of!(BellRecord, ringer_cpu),
            offset_of!(BellRecord, slot_holders),
        ));
        says(&format!("| next multiple of {PAGE} | payload |"));
    }

    #[test]
    fn the_table_above_says_the_same() {
        let says = |row: &str| assert_says("layout.rs", include_str!("layout.rs"), row);
        says(&format!("//! | 0 | {} | [`Header`] |", size_of::<Header>()));
        says(&format!("//! | {} | {} × bells | [`BellRecord`]s |", bell_offset(0), size_of::<BellRecord>()));
        says(&format!("The payload starts at a multiple of {PAGE},"));
    }

    fn header() -> Header {
        // SAFETY: every field is an atomic integer, for which all bytes zero is a value.
        // JUSTIFICATION: this is the state in which a fresh mapping is found.
        unsafe { core::mem::zeroed() }
    }

    #[test]
    fn what_was_written_is_read_back() {
        let header = header();
        let plan = Plan::new(3, 5000, FEATURE_CHANNELS).unwrap();
        header.write(&plan);
        assert_eq!(header.read(plan.size()), Ok(plan));
        assert_eq!(plan.payload_offset, 4096);
        assert_eq!(plan.size(), 3 * 4096);
    }

    #[test]
    fn another_major_version_is_refused() {
        let header = header();
        header.write(&Plan::new(1, 0, 0).unwrap());
        header.major.store(MAJOR + 1, Ordering::Relaxed);
        assert_eq!(header.read(4096), Err(LayoutError::Version { theirs: MAJOR + 1, ours: MAJOR }));
    }

    #[test]
    fn an_unknown_required_feature_is_refused_and_an_unknown_optional_one_is_not() {
        let header = header();
        let plan = Plan::new(1, 0, 1 << 31).unwrap();
        header.write(&plan);
        assert_eq!(header.read(4096), Err(LayoutError::Features { unknown: 1 << 31 }));
        let plan = Plan::new(1, 0, 1 << 40).unwrap();
        header.write(&plan);
        assert_eq!(header.read(4096), Ok(plan));
    }

    #[test]
    fn a_file_shorter_than_its_header_says_is_a_violation() {
        let header = header();
        header.write(&Plan::new(1, 4096, 0).unwrap());
        assert_eq!(
            header.read(4096),
            Err(LayoutError::Violation(PeerViolation::TooSmall { size: 4096, needed: 8192 }))
        );
    }

    #[test]
    fn all_who_join_get_numbers_of_their_own_whatever_the_count_says() {
        let header = header();
        assert_eq!((header.next_holder(), header.next_holder()), (FIRST_HOLDER, FIRST_HOLDER + 1));
        for given in [MOST_HOLDERS - FIRST_HOLDER - 1, MOST_HOLDERS, u32::MAX] {
            header.holders.store(given, Ordering::Relaxed);
            for _ in 0..3 {
                assert!((FIRST_HOLDER..MOST_HOLDERS).contains(&header.next_holder()));
            }
        }
    }

    proptest! {
        /// Whatever bytes a hostile creator leaves, an accepted plan lies within the file.
        #[test]
        fn an_accepted_header_lies_within_the_file(
            bells: u32, payload_offset: u64, payload_size: u64, size: u64, file_size: u64, honest: bool
        ) {
            let header = header();
            if let (true, Ok(plan)) = (honest, Plan::new(bells % 2000, payload_size, 0)) {
                header.write(&plan);
            } else {
                header.magic.store(MAGIC, Ordering::Relaxed);
                header.major.store(MAJOR, Ordering::Relaxed);
                header.bells.store(bells, Ordering::Relaxed);
                header.payload_offset.store(payload_offset, Ordering::Relaxed);
                header.payload_size.store(payload_size, Ordering::Relaxed);
                header.size.store(size, Ordering::Relaxed);
            }
            if let Ok(plan) = header.read(file_size) {
                prop_assert!(plan.bells <= MAX_BELLS);
                prop_assert!(bell_offset(plan.bells) <= plan.payload_offset);
                let end = plan.payload_offset.checked_add(plan.payload_size);
                prop_assert!(end.is_some_and(|end| end <= plan.size()) && plan.size() <= file_size);
            }
        }
    }
}
