// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that both sides of a trial share, handed out once and never taken back.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::site::{OpenError, Word};

/// A type that is valid when all its bytes are zero and may be shared between processes.
///
/// # Safety
/// The all-zero pattern must be a valid value, the type must be
/// `Sync`, hold no pointer, and need no drop.
pub unsafe trait Zeroed: Sync {}
// SAFETY: atomics are plain integers in memory; zero is one of them.
unsafe impl Zeroed for AtomicU8 {}
// SAFETY: as above.
unsafe impl Zeroed for AtomicU32 {}
// SAFETY: as above.
unsafe impl Zeroed for AtomicU64 {}
// SAFETY: a padded `AtomicU32`.
unsafe impl Zeroed for Word {}
// SAFETY: an array of valid zeroes is valid.
unsafe impl<T: Zeroed, const N: usize> Zeroed for [T; N] {}

/// One anonymous shared mapping: what the trial's host maps, its
/// sides inherit, and no name is left behind.
#[derive(Debug)]
pub struct Arena {
    base: *mut u8,
    size: usize,
    taken: AtomicUsize,
}

// SAFETY: the mapping is never unmapped, and `taken` is the only mutable state, an atomic.
unsafe impl Send for Arena {}
// SAFETY: as above; disjoint parts are handed out once each.
unsafe impl Sync for Arena {}

/// Memory that children inherit.
fn mapped(size: usize) -> Result<*mut u8, OpenError> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
    // SAFETY: an anonymous mapping at an address of the kernel's choice aliases nothing.
    let base = unsafe { mmap_anonymous(std::ptr::null_mut(), size, rights, flags) };
    base.map(|base| base.cast()).map_err(|error| OpenError::call("mmap", error))
}

impl Arena {
    /// Maps `size` bytes, zeroed and already backed by memory: a page
    /// fault inside a trial would be a sample.
    ///
    /// The mapping lives as long as the process, hence `'static`: a
    /// trial's host makes one and exits.
    pub fn map(size: usize) -> Result<&'static Self, OpenError> {
        Ok(Box::leak(Box::new(Self { base: mapped(size)?, size, taken: AtomicUsize::new(0) })))
    }

    /// A fresh zeroed `T`.
    pub fn place<T: Zeroed>(&'static self) -> Result<&'static T, OpenError> {
        let start = self.take(size_of::<T>(), align_of::<T>())?;
        // SAFETY: `take` gave bytes that nobody else gets, aligned, inside the mapping; zero is a valid `T`
        // (Zeroed) and the mapping is never unmapped.
        Ok(unsafe { &*start.cast::<T>() })
    }

    /// Fresh zeroed bytes, cache-line aligned, for payloads; every access is an atomic one.
    pub fn bytes(&'static self, count: usize) -> Result<&'static [AtomicU8], OpenError> {
        let start = self.take(count, align_of::<Word>())?;
        // SAFETY: as in `place`; `AtomicU8` has size and alignment one.
        Ok(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU8>(), count) })
    }

    pub fn words(&'static self, count: usize) -> Result<&'static [AtomicU64], OpenError> {
        self.slice(count)
    }

    /// `count` fresh zeroed `T`, cache-line aligned.
    pub fn slice<T: Zeroed>(&'static self, count: usize) -> Result<&'static [T], OpenError> {
        let size = count.saturating_mul(size_of::<T>());
        let start = self.take(size, align_of::<T>().max(align_of::<Word>()))?;
        // SAFETY: as in `place`; `count` of them fit the bytes taken, and the alignment is at least theirs.
        Ok(unsafe { std::slice::from_raw_parts(start.cast::<T>(), count) })
    }

    fn take(&self, size: usize, align: usize) -> Result<*mut u8, OpenError> {
        let mut taken = self.taken.load(Relaxed);
        loop {
            let start = taken.next_multiple_of(align);
            let end = start.checked_add(size).filter(|end| *end <= self.size);
            let Some(end) = end else { return Err(OpenError::ArenaFull { taken, size: self.size }) };
            match self.taken.compare_exchange_weak(taken, end, Relaxed, Relaxed) {
                // SAFETY: start <= end <= size, so the pointer stays inside the mapping.
                Ok(_) => return Ok(unsafe { self.base.add(start) }),
                Err(now) => taken = now,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_zero_and_never_share_a_line_pair() {
        let arena = Arena::map(4096).unwrap();
        let a = arena.place::<Word>().unwrap();
        let b = arena.place::<Word>().unwrap();
        assert_eq!((a.load(Relaxed), b.load(Relaxed)), (0, 0));
        assert!(std::ptr::from_ref(a).addr().abs_diff(std::ptr::from_ref(b).addr()) >= 128);
    }

    #[test]
    fn a_full_arena_says_how_full() {
        let arena = Arena::map(4096).unwrap();
        assert!(arena.bytes(4000).is_ok());
        assert_eq!(arena.bytes(4000).unwrap_err(), OpenError::ArenaFull { taken: 4000, size: 4096 });
    }
}
