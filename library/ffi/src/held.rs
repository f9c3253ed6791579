// SPDX-License-Identifier: MIT OR Apache-2.0
//! An end of a channel, and what was taken from it, which C holds across calls.

use std::ptr::NonNull;

/// Invariant: `end` came from a box and is freed by the drop. While `taken` is there, it alone
/// touches the end.
#[derive(Debug)]
pub(crate) struct Held<E, T> {
    /// A borrow of the end.
    pub(crate) taken: Option<T>,
    end: NonNull<E>,
}

// SAFETY: it owns an end, which may go from thread to thread, and a borrow of it that goes along.
unsafe impl<E: Send, T> Send for Held<E, T> {}

impl<E, T> Held<E, T> {
    /// `T` borrows nothing but the end.
    pub(crate) fn of(end: E) -> Self {
        Self { taken: None, end: NonNull::from(Box::leak(Box::new(end))) }
    }

    /// The end, as long as nothing of it is held.
    pub(crate) fn free(&mut self) -> Option<&'static mut E> {
        if self.taken.is_some() {
            return None;
        }
        // SAFETY: nothing is taken, so nobody else touches the end (invariant). 'static stands for
        // "until the drop of `self`": the result is used up within the call, or becomes what is
        // taken, which the drop takes first. JUSTIFICATION: the borrow lives in C between two
        // calls, where the compiler cannot follow it.
        Some(unsafe { self.end.as_mut() })
    }

    /// For what may be read while something is taken.
    ///
    /// # Safety
    /// The caller reads what never changes.
    pub(crate) unsafe fn constant(&self) -> &E {
        // SAFETY: a shared borrow of what only this value reaches.
        unsafe { self.end.as_ref() }
    }
}

impl<E, T> Drop for Held<E, T> {
    fn drop(&mut self) {
        self.taken = None;
        // SAFETY: it came from a box, and with what was taken gone nobody else touches it (invariant).
        drop(unsafe { Box::from_raw(self.end.as_ptr()) });
    }
}
