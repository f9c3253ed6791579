// SPDX-License-Identifier: MIT OR Apache-2.0
//! The spaces that are ready: a queue for each level.
//!
//! Not a ring as that of a space's tasks, in which the running one stays: several
//! harts take from a queue, so a space that runs is in none. To yield to an
//! equal is to go after the last and to take the first, which is the same five
//! stores among two and among thousands; the trap's entry makes them in assembly.

use core::ptr;

/// A space's place in the queue of its level.
#[repr(C)]
pub(crate) struct Place {
    /// Who runs after it; not valid if it is the last.
    pub(crate) next: *mut Place,
    /// Who runs before it; null while it is in no queue. Nobody's while it is the first.
    pub(crate) previous: *mut Place,
    /// Where it stands while it is ready.
    pub(crate) queue: *mut Queue,
}

/// The spaces of one level that are ready.
#[repr(C)]
pub(crate) struct Queue {
    /// Who runs next; null if nobody is ready.
    pub(crate) first: *mut Place,
    /// Nobody's if nobody is ready.
    pub(crate) last: *mut Place,
    /// The bits of [`crate::kernel::Kernel::ready`] of those who run before whoever yields: its
    /// level's and those above.
    pub(crate) before: u64,
    /// This level's own bit.
    pub(crate) bit: u64,
}

impl Queue {
    pub(crate) const EMPTY: Self = Self { first: ptr::null_mut(), last: ptr::null_mut(), before: 0, bit: 0 };

    /// Puts `place` after all others.
    ///
    /// # Safety
    /// `place` lives, is in no queue, and stays where it is until it is taken out.
    #[inline(always)]
    pub(crate) unsafe fn push(&mut self, place: *mut Place) {
        // SAFETY: by the caller's promise; the last is in the queue, so it lives.
        unsafe {
            if self.first.is_null() {
                self.first = place;
                // Any, so long as there is one.
                (*place).previous = place;
            } else {
                (*self.last).next = place;
                (*place).previous = self.last;
            }
        }
        self.last = place;
    }

    /// Takes out the first; says whether the queue is empty now.
    ///
    /// # Safety
    /// There is one.
    #[inline(always)]
    pub(crate) unsafe fn take_first(&mut self) -> (*mut Place, bool) {
        let place = self.first;
        let alone = place == self.last;
        // SAFETY: who is in the queue lives.
        unsafe {
            self.first = if alone { ptr::null_mut() } else { (*place).next };
            (*place).previous = ptr::null_mut();
        }
        (place, alone)
    }

    /// Takes out `place`; says whether the queue is empty now.
    ///
    /// # Safety
    /// `place` is in this queue.
    pub(crate) unsafe fn remove(&mut self, place: *mut Place) -> bool {
        // SAFETY: who is in the queue lives, and so do the neighbours that it has.
        unsafe {
            if place == self.first {
                return self.take_first().1;
            }
            let previous = (*place).previous;
            if place == self.last {
                self.last = previous;
            } else {
                let next = (*place).next;
                (*previous).next = next;
                (*next).previous = previous;
            }
            (*place).previous = ptr::null_mut();
            false
        }
    }
}
