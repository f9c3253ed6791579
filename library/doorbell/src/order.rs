// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a lock orders, said once more where the thread sanitizer sees it.
//!
//! The slow paths of the standard library's locks lie in a library that is not
//! compiled with the sanitizer. A lock that was contended orders nothing for it,
//! and it reports what the lock protects. `ci/sanitize thread` sets
//! `thread_sanitizer`; without that nothing here does anything, or takes any space.
#![allow(unexpected_cfgs, reason = "`ci/sanitize` sets it")]

#[cfg(thread_sanitizer)]
use std::sync::atomic::{AtomicU32, Ordering};

/// Goes with one lock.
#[derive(Debug, Default)]
pub(crate) struct Order {
    #[cfg(thread_sanitizer)]
    turn: AtomicU32,
}

impl Order {
    pub(crate) const fn new() -> Self {
        Self {
            #[cfg(thread_sanitizer)]
            turn: AtomicU32::new(0),
        }
    }

    /// To be called by whoever has the lock alone, after it was taken and before it is given up.
    #[inline(always)]
    pub(crate) fn pass(&self) {
        #[cfg(thread_sanitizer)]
        self.turn.fetch_add(1, Ordering::AcqRel);
    }
}
