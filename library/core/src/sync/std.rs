// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processor's atomics.

pub use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

/// A full fence at a place where a `SeqCst` read-modify-write was the last thing done.
///
/// On x86 a locked instruction already is one (Intel SDM vol. 3A, 9.2.3.9: loads and stores are not
/// reordered with locked instructions), so only the compiler has to be told. Elsewhere it is
/// `fence(SeqCst)`.
#[inline(always)]
pub fn fence_after_rmw() {
    // Miri knows the language, not the processor.
    if cfg!(all(any(target_arch = "x86", target_arch = "x86_64"), not(miri))) {
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}
