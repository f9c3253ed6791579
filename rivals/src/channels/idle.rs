// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one who polls does between two looks, the same for every channel.

use std::sync::atomic::{AtomicBool, Ordering};

static SHARED: AtomicBool = AtomicBool::new(false);

/// Says whether both sides share a CPU: spinning there would only keep the other from running.
pub fn share_cpu(shared: bool) {
    SHARED.store(shared, Ordering::Relaxed);
}

/// Calls `attempt` until it gives something: spins between, or lets
/// the other side run if it shares the CPU.
#[inline(always)]
pub fn poll<R>(mut attempt: impl FnMut() -> Option<R>) -> R {
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        if SHARED.load(Ordering::Relaxed) {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}
