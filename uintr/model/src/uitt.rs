// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user-interrupt target table (UITT): what a sender may post to.

/// Bit of the low qword: the entry may be used.
pub const VALID: u64 = 1 << 0;
/// Bits of the low qword that must be zero: 7:1 and 63:16.
pub const RESERVED: u64 = 0xFFFF_FFFF_FFFF_00FE;

/// One 16-byte entry. The table is 16-byte aligned; entry *i* is at `UITTADDR + 16 * i`.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UittEntry {
    /// V in bit 0, the user vector in bits 15:8.
    pub low: u64,
    /// Linear address of the target's UPID, 64-byte aligned.
    pub upid_address: u64,
}

impl UittEntry {
    /// A valid entry that posts `vector` (0 to 63 to be accepted by
    /// SENDUIPI) to the UPID at `upid_address`.
    #[must_use]
    pub const fn new(upid_address: u64, vector: u8) -> Self {
        Self { low: VALID | (vector as u64) << 8, upid_address }
    }

    /// Whether the entry may be used.
    #[must_use]
    pub const fn valid(self) -> bool {
        self.low & VALID != 0
    }

    /// The user vector, unchecked.
    #[must_use]
    pub const fn vector(self) -> u8 {
        (self.low >> 8) as u8
    }
}

impl From<u128> for UittEntry {
    fn from(bytes: u128) -> Self {
        Self { low: bytes as u64, upid_address: (bytes >> 64) as u64 }
    }
}

impl From<UittEntry> for u128 {
    fn from(entry: UittEntry) -> Self {
        u128::from(entry.upid_address) << 64 | u128::from(entry.low)
    }
}

const _: () = {
    use core::mem::{align_of, offset_of, size_of};
    assert!(size_of::<UittEntry>() == 16 && align_of::<UittEntry>() == 16);
    assert!(offset_of!(UittEntry, low) == 0 && offset_of!(UittEntry, upid_address) == 8);
    assert!(UittEntry::new(0, 63).low & RESERVED == 0);
};
