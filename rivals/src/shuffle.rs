// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lots: the order of the variants in a round, and the rounds of a resample.

/// A source of shuffles (xorshift64), the same for the same seed.
#[derive(Clone, Debug)]
pub struct Shuffle(u64);

impl Shuffle {
    /// From `seed`.
    pub fn new(seed: u64) -> Self {
        // Zero is the one state that xorshift never leaves.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // The high half, as the low bits of xorshift are its weak
        // ones. A limit of some hundreds makes no bias that counts.
        ((self.0 >> 32) % limit as u64) as usize
    }

    /// `0 .. length` in shuffled order.
    pub fn order(&mut self, length: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..length).collect();
        for last in (1..length).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_of_three_comes_up_about_as_often_as_every_other() {
        let mut shuffle = Shuffle::new(1);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            *counts.entry(shuffle.order(3)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
