// SPDX-License-Identifier: MIT OR Apache-2.0
//! One block of memory for a device to write to and read from.

use std::cell::UnsafeCell;

/// The alignment that every device takes: a page, which is also the largest logical block in use.
const ALIGNMENT: usize = 4096;

/// One block of memory, aligned to a page.
///
/// Invariant of the buffer: a device or the kernel touches the bytes only inside
/// [`Transfer::once`](super::Transfer::once), which does not return before it is done; the methods
/// here are called only between two of those, by the thread that makes them.
pub(crate) struct Buffer {
    pages: Box<[UnsafeCell<Page>]>,
    bytes: usize,
}

#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Page([u8; ALIGNMENT]);

impl Buffer {
    /// A buffer of `bytes`, filled so that no device can compress it away.
    pub(crate) fn new(bytes: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(0x0064_6f6f_7262_656c);
        let page = |_| {
            let mut page = Page([0; ALIGNMENT]);
            random.fill(&mut page.0);
            UnsafeCell::new(page)
        };
        Self { pages: (0..bytes.div_ceil(ALIGNMENT)).map(page).collect(), bytes }
    }

    /// Its length, bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn pointer(&self) -> *mut u8 {
        self.pages.as_ptr().cast_mut().cast()
    }

    /// Writes `stamp` over its first eight bytes.
    pub(crate) fn stamp(&self, stamp: u64) {
        self.stamp_at(0, stamp);
    }

    /// Its first eight bytes.
    pub(crate) fn stamped(&self) -> u64 {
        self.stamped_at(0)
    }

    /// Writes `stamp` over the eight bytes at `offset`, a multiple of eight inside of it.
    pub(crate) fn stamp_at(&self, offset: usize, stamp: u64) {
        assert!(
            offset + 8 <= self.pages.len() * ALIGNMENT && offset.is_multiple_of(8),
            "outside of the buffer"
        );
        // SAFETY: inside of it and aligned, as asserted; by the
        // invariant of the buffer nobody else touches it now.
        unsafe { self.pointer().add(offset).cast::<u64>().write_volatile(stamp) };
    }

    /// The eight bytes at `offset`, a multiple of eight inside of it.
    pub(crate) fn stamped_at(&self, offset: usize) -> u64 {
        assert!(
            offset + 8 <= self.pages.len() * ALIGNMENT && offset.is_multiple_of(8),
            "outside of the buffer"
        );
        // SAFETY: as above.
        unsafe { self.pointer().add(offset).cast::<u64>().read_volatile() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_aligned_and_keeps_its_stamp() {
        for bytes in [512, 4096, 65_536] {
            let buffer = Buffer::new(bytes);
            assert_eq!((buffer.pointer().addr() % ALIGNMENT, buffer.bytes()), (0, bytes));
            buffer.stamp(42);
            assert_eq!(buffer.stamped(), 42);
        }
    }
}
