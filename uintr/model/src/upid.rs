// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user posted-interrupt descriptor (UPID): what a sender writes and a receiver's core reads.

/// Bit of the low qword: a notification was sent and is not yet processed.
pub const ON: u64 = 1 << 0;
/// Bit of the low qword: senders set PIR and send no notification.
pub const SN: u64 = 1 << 1;
/// Bits of the low qword that make SENDUIPI raise #GP(0): 15:2 and 31:24.
pub const RESERVED: u64 = 0xFF00_FFFC;

const NV_SHIFT: u32 = 16;
const NV_MASK: u64 = 0xFF << NV_SHIFT;
const NDST_SHIFT: u32 = 32;
const NDST_MASK: u64 = 0xFFFF_FFFF << NDST_SHIFT;

/// The 16 bytes of a descriptor as one read saw them.
///
/// ```
/// use doorbell_uintr::upid::UpidValue;
/// // x2APIC destination 5, vector 0xEC, ON, user vector 3 posted
/// let upid = UpidValue { low: 0x0000_0005_00EC_0001, pir: 0x8 };
/// assert!(upid.on() && !upid.sn());
/// assert_eq!((upid.nv(), upid.ndst()), (0xEC, 5));
/// ```
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UpidValue {
    /// ON, SN, NV, NDST and the reserved bits between them.
    pub low: u64,
    /// Posted-interrupt requests: bit *v* is user vector *v*.
    pub pir: u64,
}

impl UpidValue {
    /// A descriptor with nothing posted: notification vector `nv` to APIC `ndst` (already shifted
    /// in xAPIC mode, see [`ApicMode::ndst`](crate::cpu::ApicMode::ndst)).
    #[must_use]
    pub const fn new(nv: u8, ndst: u32) -> Self {
        Self { low: (nv as u64) << NV_SHIFT | (ndst as u64) << NDST_SHIFT, pir: 0 }
    }

    /// Outstanding notification.
    #[must_use]
    pub const fn on(self) -> bool {
        self.low & ON != 0
    }

    /// Suppress notification.
    #[must_use]
    pub const fn sn(self) -> bool {
        self.low & SN != 0
    }

    /// Notification vector: the ordinary interrupt vector of the IPI.
    #[must_use]
    pub const fn nv(self) -> u8 {
        (self.low >> NV_SHIFT) as u8
    }

    /// Notification destination, as stored. In xAPIC mode only bits 15:8 are used.
    #[must_use]
    pub const fn ndst(self) -> u32 {
        (self.low >> NDST_SHIFT) as u32
    }

    /// The same with ON set or cleared.
    #[must_use]
    pub const fn with_on(self, on: bool) -> Self {
        Self { low: if on { self.low | ON } else { self.low & !ON }, ..self }
    }

    /// The same with SN set or cleared.
    #[must_use]
    pub const fn with_sn(self, sn: bool) -> Self {
        Self { low: if sn { self.low | SN } else { self.low & !SN }, ..self }
    }

    /// The same with other requests.
    #[must_use]
    pub const fn with_pir(self, pir: u64) -> Self {
        Self { pir, ..self }
    }

    /// Whether a reserved bit is set, which SENDUIPI refuses and notification processing ignores.
    #[must_use]
    pub const fn reserved(self) -> bool {
        self.low & RESERVED != 0
    }
}

impl From<u128> for UpidValue {
    fn from(bytes: u128) -> Self {
        Self { low: bytes as u64, pir: (bytes >> 64) as u64 }
    }
}

impl From<UpidValue> for u128 {
    fn from(upid: UpidValue) -> Self {
        u128::from(upid.pir) << 64 | u128::from(upid.low)
    }
}

const _: () = {
    use core::mem::{align_of, offset_of, size_of};
    assert!(size_of::<UpidValue>() == 16 && align_of::<UpidValue>() == 16);
    assert!(offset_of!(UpidValue, low) == 0 && offset_of!(UpidValue, pir) == 8);
    assert!(UpidValue::new(0xEC, 5).with_on(true).low == 0x0000_0005_00EC_0001);
    assert!(RESERVED & (ON | SN | NV_MASK | NDST_MASK) == 0);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bytes_survive_the_way_through_an_integer() {
        let upid = UpidValue::new(0x31, 0xFFFF_FFFF).with_pir(1 << 63);
        assert_eq!(UpidValue::from(u128::from(upid)), upid);
    }
}
