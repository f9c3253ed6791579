// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is sent, and the tally of what arrives: every message has a
//! number, and every one of its bytes is checked.
//!
//! The first eight bytes hold the number in 48 bits and a hash of it in 16. Of a longer message the
//! last eight hold a second hash, and what lies between is the same for all, so that the receiver
//! compares its sum: it reads every byte.

/// Odd, hence a bijection of words; the fraction of the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const NUMBER_BITS: u32 = 48;

fn first_word(number: u64) -> u64 {
    let number = number & ((1 << NUMBER_BITS) - 1);
    number | (number.wrapping_mul(SPREAD) >> NUMBER_BITS << NUMBER_BITS)
}

fn last_word(number: u64) -> u64 {
    !number.wrapping_mul(SPREAD)
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.as_chunks::<8>().0.iter().fold(0, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)))
}

/// A message of `S` bytes, a multiple of eight, that is stamped anew for each sending.
pub struct Letter<const S: usize>(Box<[u8; S]>);

impl<const S: usize> Letter<S> {
    pub fn new() -> Self {
        let mut bytes: Box<[u8]> = vec![0; S].into();
        for (index, word) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *word = (index as u64 + 1).wrapping_mul(SPREAD).to_ne_bytes();
        }
        Self(bytes.try_into().expect("S bytes"))
    }

    /// The message with this number.
    #[inline(always)]
    pub fn stamp(&mut self, number: u64) -> &[u8; S] {
        self.0[..8].copy_from_slice(&first_word(number).to_ne_bytes());
        if S >= 16 {
            self.0[S - 8..].copy_from_slice(&last_word(number).to_ne_bytes());
        }
        &self.0
    }

    fn middle(bytes: &[u8; S]) -> &[u8] {
        if S >= 16 { &bytes[8..S - 8] } else { &[] }
    }
}

/// The number a message bears.
#[inline(always)]
pub fn number<const S: usize>(bytes: &[u8; S]) -> u64 {
    u64::from_ne_bytes(bytes[..8].try_into().expect("eight bytes")) & ((1 << NUMBER_BITS) - 1)
}

/// What arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    pub received: u64,
    /// Numbers that were passed over.
    pub missing: u64,
    /// Numbers that came although a later one had come.
    pub repeated: u64,
    /// Messages whose bytes are not what was sent.
    pub corrupt: u64,
}

impl std::ops::Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            received: self.received + other.received,
            missing: self.missing + other.missing,
            repeated: self.repeated + other.repeated,
            corrupt: self.corrupt + other.corrupt,
        }
    }
}

/// Checks what arrives.
pub struct Reader<const S: usize> {
    expected: u64,
    middle: u64,
    pub tally: Tally,
}

impl<const S: usize> Reader<S> {
    pub fn new() -> Self {
        Self { expected: 0, middle: sum(Letter::<S>::middle(&Letter::new().0)), tally: Tally::default() }
    }

    /// Forgets what came so far: the next message has the number `first`.
    pub fn restart(&mut self, first: u64) {
        (self.expected, self.tally) = (first, Tally::default());
    }

    #[inline(always)]
    pub fn read(&mut self, bytes: &[u8; S]) {
        self.tally.received += 1;
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let number = number(bytes);
        let whole = word(0) == first_word(number)
            && (S < 16 || word(S - 8) == last_word(number))
            && sum(Letter::middle(bytes)) == self.middle;
        if whole && number == self.expected {
            self.expected += 1;
        } else {
            self.irregular(whole, number);
        }
    }

    #[cold]
    fn irregular(&mut self, whole: bool, number: u64) {
        if !whole {
            self.tally.corrupt += 1;
            self.expected += 1;
        } else if number > self.expected {
            self.tally.missing += number - self.expected;
            self.expected = number + 1;
        } else {
            self.tally.repeated += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_in_order_is_counted_and_nothing_else() {
        let (mut letter, mut reader) = (Letter::<64>::new(), Reader::<64>::new());
        (0..1000).for_each(|number| reader.read(letter.stamp(number)));
        assert_eq!(reader.tally, Tally { received: 1000, ..Tally::default() });
    }

    #[test]
    fn a_message_left_out_or_sent_twice_is_noticed() {
        let (mut letter, mut reader) = (Letter::<8>::new(), Reader::<8>::new());
        for number in [0, 1, 4, 4, 5] {
            reader.read(letter.stamp(number));
        }
        assert_eq!(reader.tally, Tally { received: 5, missing: 2, repeated: 1, corrupt: 0 });
    }

    #[test]
    fn one_wrong_bit_anywhere_is_noticed() {
        fn every_bit<const S: usize>() {
            for bit in 0..S * 8 {
                let (mut letter, mut reader) = (Letter::<S>::new(), Reader::<S>::new());
                let mut bytes = *letter.stamp(0);
                bytes[bit / 8] ^= 1 << (bit % 8);
                reader.read(&bytes);
                assert_eq!(reader.tally.corrupt, 1, "bit {bit} of {S} bytes");
            }
        }
        every_bit::<8>();
        every_bit::<64>();
    }
}
