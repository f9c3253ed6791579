// SPDX-License-Identifier: MIT OR Apache-2.0
//! An end of which something is lent to Python between two calls.

use std::ptr::NonNull;

/// An end, and what borrows it.
///
/// Invariant: `end` came from a box and is freed by the drop. While
/// `lent` is there, it alone touches the end.
#[derive(Debug)]
pub(crate) struct Lending<E, L> {
    pub(crate) lent: Option<L>,
    end: NonNull<E>,
}

// SAFETY: it owns an end, which may go from thread to thread, and a borrow of it that goes along.
unsafe impl<E: Send, L> Send for Lending<E, L> {}

impl<E, L> Lending<E, L> {
    pub(crate) fn new(end: E) -> Self {
        Self { lent: None, end: NonNull::from(Box::leak(Box::new(end))) }
    }

    /// The end. The caller has seen that nothing of it is lent.
    pub(crate) fn free(&mut self) -> &'static mut E {
        assert!(self.lent.is_none(), "what is held is refused before");
        // SAFETY: nothing is lent, so nobody else touches the end (invariant). 'static stands for "until
        // the drop of `self`": the result is used up within the call, or becomes what is lent,
        // which the drop takes first. JUSTIFICATION: the borrow lives in Python between two calls,
        // where the compiler cannot follow it.
        unsafe { self.end.as_mut() }
    }
}

impl<E, L> Drop for Lending<E, L> {
    fn drop(&mut self) {
        self.lent = None;
        // SAFETY: it came from a box, and with what was lent gone nobody else touches it (invariant).
        drop(unsafe { Box::from_raw(self.end.as_ptr()) });
    }
}
