// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model checker's atomics.
//!
//! loom treats `SeqCst` accesses as `AcqRel` and models only `fence(SeqCst)` fully (loom's README),
//! which is why the protocol is written with explicit fences.

pub use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

/// loom explores instructions in the order in which they are written.
pub fn compiler_fence(_: Ordering) {}

/// A full fence at a place where a `SeqCst` read-modify-write was the last thing done.
pub fn fence_after_rmw() {
    fence(Ordering::SeqCst);
}
