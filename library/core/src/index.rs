// SPDX-License-Identifier: MIT OR Apache-2.0
//! Capacities, and offsets and lengths that the other side wrote.
//!
//! Every function takes values that were copied out of shared memory once, and sizes from private
//! memory. What is computed of a ring's indices is in [`arithmetic`](crate::channel::arithmetic).

use crate::violation::PeerViolation;

/// The capacity of a ring in bytes: a power of two, from private memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity(u64);

impl Capacity {
    /// The least there is. It takes messages of up to 16 bytes; three eighths of a ring of 16 bytes
    /// are less than a record's word, and its longest message would have a length below zero.
    pub const SMALLEST: Self = Self(64);

    /// `None` unless `value` is a power of two, at least [`SMALLEST`](Self::SMALLEST) and below
    /// 2⁶³. The upper bound keeps every distance of two honest indices below the half of all
    /// indices, so that "behind" and "ahead" stay distinct.
    pub const fn new(value: u64) -> Option<Self> {
        if value.is_power_of_two() && value >= Self::SMALLEST.0 && value < 1 << 63 {
            Some(Self(value))
        } else {
            None
        }
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.0
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_powers_of_two_from_64_to_below_two_to_the_63_are_capacities() {
        for too_small in [0, 1, 8, 16, 32, 63] {
            assert!(Capacity::new(too_small).is_none());
        }
        assert!(Capacity::new(65).is_none());
        assert_eq!(Capacity::new(64), Some(Capacity::SMALLEST));
        assert!(Capacity::new(1 << 62).is_some());
        assert!(Capacity::new(1 << 63).is_none());
    }

    /// All offsets and lengths that a small memory can tell apart,
    /// and those in the middle and at the end of the type.
    #[test]
    fn a_span_is_accepted_exactly_if_it_lies_inside() {
        let middle = 1 << 63;
        let edges = || (0..24_u64).chain(middle - 4..middle + 4).chain(u64::MAX - 24..=u64::MAX);
        for size in edges() {
            for offset in edges() {
                for length in edges() {
                    let end = u128::from(offset) + u128::from(length);
                    let inside = (end <= u128::from(size)).then_some(end);
                    let accepted = span(offset, length, size).ok().map(u128::from);
                    assert_eq!(accepted, inside, "{length} at {offset} of {size}");
                }
            }
        }
    }
}
