// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dying at a chosen write to shared memory, so that tests can try a death at each of them.
//!
//! Every write to memory that others see already is preceded by a [`point`]; what a maker writes
//! into fresh memory is not. It is nothing without the feature `fault_injection`.

/// The process is about to write to shared memory.
#[cfg(not(feature = "fault_injection"))]
#[inline(always)]
pub fn point() {}

#[cfg(feature = "fault_injection")]
pub use injection::{count, die_at, point};

#[cfg(feature = "fault_injection")]
mod injection {
    // The processor's atomics also under the model checker: this is no part of what it explores.
    use core::sync::atomic::{AtomicU64, Ordering};

    static PASSED: AtomicU64 = AtomicU64::new(0);
    static DEADLY: AtomicU64 = AtomicU64::new(u64::MAX);

    /// The process is about to write to shared memory.
    pub fn point() {
        if PASSED.fetch_add(1, Ordering::Relaxed) == DEADLY.load(Ordering::Relaxed) {
            die();
        }
    }

    /// From now on, counts points anew and aborts the process at
    /// number `number`, the first being 0.
    pub fn die_at(number: u64) {
        PASSED.store(0, Ordering::Relaxed);
        DEADLY.store(number, Ordering::Relaxed);
    }

    /// How many points were passed since [`die_at`], or the start.
    pub fn count() -> u64 {
        PASSED.load(Ordering::Relaxed)
    }

    /// A panic does not leave a function of the C ABI: it aborts the
    /// process, also where there is no library to ask.
    extern "C" fn die() -> ! {
        panic!("a fault was injected at a write to shared memory");
    }
}
