// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arithmetic on indices, offsets and lengths that the other side wrote.
//!
//! Indices run freely over all of `u64`; the place in the ring is the index modulo the capacity. Every function
//! takes values that were copied out of shared memory once, and capacities from private memory.

use crate::violation::PeerViolation;

/// The capacity of a ring in bytes or slots: a power of two, from private memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity(u64);

impl Capacity {
    /// `None` unless `value` is a power of two below 2⁶³. The bound keeps every distance of two honest indices
    /// below the half of all indices, so that "behind" and "ahead" stay distinct.
    pub const fn new(value: u64) -> Option<Self> {
        if value.is_power_of_two() && value < 1 << 63 { Some(Self(value)) } else { None }
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Where the element with this index lies.
    pub const fn place(self, index: u64) -> u64 {
        index & self.0.wrapping_sub(1)
    }

    /// How many elements lie from `place(index)` to the end of the ring; at least one.
    pub const fn until_wrap(self, index: u64) -> u64 {
        self.0.wrapping_sub(self.place(index))
    }

    /// How far `ahead` is ahead of `behind`.
    ///
    /// # Errors
    /// [`PeerViolation::IndexOutOfRange`] if that is more than the capacity. Which of the two the peer wrote is
    /// for the caller to know; `ahead` is reported as theirs.
    pub const fn distance(self, ahead: u64, behind: u64) -> Result<u64, PeerViolation> {
        let distance = ahead.wrapping_sub(behind);
        if distance <= self.0 {
            Ok(distance)
        } else {
            Err(PeerViolation::IndexOutOfRange { theirs: ahead, ours: behind, capacity: self.0 })
        }
    }
}

/// Checks that `length` bytes at `offset` lie within `size` bytes, and returns the end.
///
/// # Errors
/// [`PeerViolation::LengthOutOfRange`] if they do not, or if their sum overflows.
pub const fn span(offset: u64, length: u64, size: u64) -> Result<u64, PeerViolation> {
    match offset.checked_add(length) {
        Some(end) if end <= size => Ok(end),
        _ => Err(PeerViolation::LengthOutOfRange { length, available: size.saturating_sub(offset) }),
    }
}

/// Rounds `length` up to a multiple of 8. `None` if the result does not fit.
pub const fn align8(length: u64) -> Option<u64> {
    match length.checked_add(7) {
        Some(padded) => Some(padded & !7),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_powers_of_two_below_two_to_the_63_are_capacities() {
        assert!(Capacity::new(0).is_none());
        assert!(Capacity::new(3).is_none());
        assert!(Capacity::new(1).is_some());
        assert!(Capacity::new(1 << 62).is_some());
        assert!(Capacity::new(1 << 63).is_none());
    }

    /// All indices near the wrap, all small capacities: the definition, by brute force.
    #[test]
    fn distance_accepts_exactly_what_the_ring_can_hold() {
        for bits in 0..5 {
            let capacity = Capacity::new(1 << bits).unwrap();
            for start in (0_u64..40).chain(u64::MAX - 40..=u64::MAX) {
                for step in 0..64_u64 {
                    let expected = step <= capacity.get();
                    assert_eq!(capacity.distance(start.wrapping_add(step), start).is_ok(), expected);
                    if step > 0 {
                        assert!(capacity.distance(start, start.wrapping_add(step)).is_err());
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_place_lies_in_the_ring_whatever_the_index(index: u64, bits in 0_u32..63) {
            let capacity = Capacity::new(1 << bits).unwrap();
            prop_assert!(capacity.place(index) < capacity.get());
            prop_assert!(capacity.until_wrap(index) >= 1);
            prop_assert_eq!(capacity.place(index) + capacity.until_wrap(index), capacity.get());
        }

        #[test]
        fn an_accepted_distance_never_exceeds_the_capacity(ahead: u64, behind: u64, bits in 0_u32..63) {
            let capacity = Capacity::new(1 << bits).unwrap();
            if let Ok(distance) = capacity.distance(ahead, behind) {
                prop_assert!(distance <= capacity.get());
                prop_assert_eq!(behind.wrapping_add(distance), ahead);
            }
        }

        #[test]
        fn an_accepted_span_lies_inside(offset: u64, length: u64, size: u64) {
            if let Ok(end) = span(offset, length, size) {
                prop_assert!(end <= size && offset <= end && end - offset == length);
            } else {
                prop_assert!(u128::from(offset) + u128::from(length) > u128::from(size));
            }
        }

        #[test]
        fn align8_is_the_next_multiple(length: u64) {
            match align8(length) {
                Some(aligned) => prop_assert!(aligned % 8 == 0 && aligned >= length && aligned - length < 8),
                None => prop_assert!(length > u64::MAX - 7),
            }
        }
    }
}
