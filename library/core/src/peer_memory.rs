// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes that another process may be writing at this very moment.
//!
//! A `&[u8]` promises that nobody else writes, so none is ever made
//! of such bytes. They are copied, in and out, with atomic accesses;
//! what was copied out is private and can be checked and then used.

use crate::fault;
use crate::index::span;
use crate::sync::{AtomicU8, AtomicU64, Ordering};
use crate::violation::PeerViolation;
use core::marker::PhantomData;

/// A stretch of shared memory.
///
/// Its length is private: the peer cannot change what is in bounds.
#[derive(Clone, Copy, Debug)]
pub struct PeerMemory<'a> {
    base: *mut u8,
    length: u64,
    mapping: PhantomData<&'a AtomicU8>,
}

// SAFETY: it only gives atomic access to the bytes, which may be shared (invariant of `new`).
unsafe impl Send for PeerMemory<'_> {}
// SAFETY: as above.
unsafe impl Sync for PeerMemory<'_> {}

impl<'a> PeerMemory<'a> {
    /// Memory of `length` bytes at `base`.
    ///
    /// # Safety
    /// `base` is valid for reads and writes of `length` bytes for all of `'a` (or for reads only,
    /// and then nobody calls [`write`](Self::write)), and everybody in this process who touches
    /// these bytes does so atomically. Threads that touch the same bytes at the same time, one
    /// of them writing, do so at offsets that are equal modulo 8: what is aligned is copied by
    /// words, the rest by bytes, and atomics of two sizes must not race.
    pub const unsafe fn new(base: *mut u8, length: usize) -> Self {
        // usize has at most 64 bits on every target this crate builds for.
        Self { base, length: length as u64, mapping: PhantomData }
    }

    /// How many bytes.
    pub const fn len(&self) -> u64 {
        self.length
    }

    /// Where it begins. Whoever reads or writes through this keeps to
    /// what [`new`](Self::new) demands.
    pub const fn as_ptr(&self) -> *mut u8 {
        self.base
    }

    /// Are there none?
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Where byte `offset` is, if `length` bytes from there are in bounds.
    fn at(&self, offset: u64, length: u64) -> Result<*mut u8, PeerViolation> {
        span(offset, length, self.length)?;
        // In bounds of a mapping, therefore below the size of the address space.
        let offset = usize::try_from(offset)
            .map_err(|_| PeerViolation::LengthOutOfRange { length, available: self.length })?;
        Ok(self.base.wrapping_add(offset))
    }

    /// Part of this memory.
    ///
    /// # Errors
    /// [`PeerViolation::LengthOutOfRange`] if it is not within.
    pub fn part(&self, offset: u64, length: u64) -> Result<Self, PeerViolation> {
        Ok(Self { base: self.at(offset, length)?, length, mapping: PhantomData })
    }

    /// A word that both sides read and write.
    ///
    /// # Errors
    /// [`PeerViolation::LengthOutOfRange`] if it is not within; [`PeerViolation::Misaligned`].
    pub fn word64(&self, offset: u64) -> Result<&'a AtomicU64, PeerViolation> {
        let at = self.at(offset, 8)?.cast::<AtomicU64>();
        if !at.is_aligned() {
            return Err(PeerViolation::Misaligned { value: offset, unit: 8 });
        }
        // SAFETY: in bounds, aligned, valid for 'a and only touched atomically (invariant of `new`).
        Ok(unsafe { &*at })
    }

    /// Copies bytes out, once. Another process may change them
    /// meanwhile: the copy then mixes old and new.
    ///
    /// # Errors
    /// [`PeerViolation::LengthOutOfRange`] if `offset` and `to` reach beyond the memory.
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<(), PeerViolation> {
        let from = self.at(offset, to.len() as u64)?;
        let head = from.align_offset(8).min(to.len());
        let (to_head, to_rest) = to.split_at_mut(head);
        // SAFETY: `from` is valid for `to.len()` bytes (checked by `at`); the three parts are consecutive.
        unsafe {
            read_bytes(from, to_head);
            let words = from.wrapping_add(head).cast::<AtomicU64>();
            let (to_words, to_tail) = to_rest.as_chunks_mut::<8>();
            for (index, to_word) in to_words.iter_mut().enumerate() {
                *to_word = (*words.wrapping_add(index)).load(Ordering::Relaxed).to_ne_bytes();
            }
            read_bytes(words.wrapping_add(to_words.len()).cast(), to_tail);
        }
        Ok(())
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// [`PeerViolation::LengthOutOfRange`] if `offset` and `from` reach beyond the memory.
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<(), PeerViolation> {
        let to = self.at(offset, from.len() as u64)?;
        let head = to.align_offset(8).min(from.len());
        let (from_head, from_rest) = from.split_at(head);
        // SAFETY: `to` is valid for `from.len()` bytes (checked by `at`); the three parts are consecutive.
        unsafe {
            write_bytes(to, from_head);
            let words = to.wrapping_add(head).cast::<AtomicU64>();
            let (from_words, from_tail) = from_rest.as_chunks::<8>();
            for (index, from_word) in from_words.iter().enumerate() {
                fault::point();
                (*words.wrapping_add(index)).store(u64::from_ne_bytes(*from_word), Ordering::Relaxed);
            }
            write_bytes(words.wrapping_add(from_words.len()).cast(), from_tail);
        }
        Ok(())
    }
}

/// # Safety
/// `from` is valid for atomic reads of `to.len()` bytes.
unsafe fn read_bytes(from: *const u8, to: &mut [u8]) {
    for (index, byte) in to.iter_mut().enumerate() {
        // SAFETY: by contract.
        *byte = unsafe { &*from.wrapping_add(index).cast::<AtomicU8>() }.load(Ordering::Relaxed);
    }
}

/// # Safety
/// `to` is valid for atomic writes of `from.len()` bytes.
unsafe fn write_bytes(to: *mut u8, from: &[u8]) {
    for (index, byte) in from.iter().enumerate() {
        // SAFETY: by contract.
        unsafe { &*to.wrapping_add(index).cast::<AtomicU8>() }.store(*byte, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    fn memory(words: &mut [u64]) -> PeerMemory<'_> {
        // SAFETY: the exclusive borrow lasts as long as the result.
        unsafe { PeerMemory::new(words.as_mut_ptr().cast(), words.len() * 8) }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back_and_nothing_else_changes(
            offset in 0_u64..100, bytes: Vec<u8>
        ) {
            let mut words = [0xa5a5_a5a5_a5a5_a5a5_u64; 16];
            let before = words;
            let memory = memory(&mut words);
            let fits = offset as usize + bytes.len() <= 128;
            prop_assert_eq!(memory.write(offset, &bytes).is_ok(), fits);
            let mut copy = vec![0; bytes.len()];
            prop_assert_eq!(memory.read(offset, &mut copy).is_ok(), fits);
            let mut whole = [0; 128];
            memory.read(0, &mut whole).unwrap();
            if fits {
                prop_assert_eq!(&copy, &bytes);
                let start = offset as usize;
                prop_assert!(whole[..start].iter().chain(&whole[start + bytes.len()..]).all(|byte| *byte == 0xa5));
            } else {
                prop_assert_eq!(words, before);
            }
        }

        #[test]
        fn no_part_reaches_beyond_the_whole(offset: u64, length: u64) {
            let mut words = [0_u64; 4];
            let memory = memory(&mut words);
            let within = offset.checked_add(length).is_some_and(|end| end <= 32);
            prop_assert_eq!(memory.part(offset, length).is_ok(), within);
            let word = memory.word64(offset);
            prop_assert_eq!(word.is_ok(), offset <= 24 && offset % 8 == 0);
        }
    }
}
