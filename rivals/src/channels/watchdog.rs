// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends the program when a channel does not come back: a message or a
//! wake-up was lost, and nobody will say so.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const MOST: usize = 200;

/// Who runs. Written between blocks, read by the signal handler during one.
struct Who(UnsafeCell<[u8; MOST]>);

// SAFETY: only the main thread writes it, with no alarm set; the
// handler runs after `LENGTH` was stored.
unsafe impl Sync for Who {}

static WHO: Who = Who(UnsafeCell::new([0; MOST]));
static LENGTH: AtomicUsize = AtomicUsize::new(0);

extern "C" fn bite(_: i32) {
    // SAFETY: `write` and `_exit` may be called in a handler, and
    // nobody writes `WHO` while an alarm is set.
    unsafe {
        libc::write(2, WHO.0.get().cast(), LENGTH.load(Ordering::Acquire));
        libc::_exit(3);
    }
}

/// Runs `block`; if it takes longer than `patience` (whole seconds) the program ends with status 3
/// and says that `who` hangs.
pub fn watch<R>(who: &str, patience: Duration, block: impl FnOnce() -> R) -> R {
    let text = format!("{who}: no answer within {patience:?}: a message or a wake-up was lost\n");
    let length = text.len().min(MOST);
    // SAFETY: no alarm is set, so no handler reads it; `bite` does only what a handler may.
    unsafe {
        WHO.0.get().cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), length);
        LENGTH.store(length, Ordering::Release);
        libc::signal(libc::SIGALRM, bite as extern "C" fn(i32) as usize);
        libc::alarm(patience.as_secs() as u32);
    }
    let result = block();
    // SAFETY: a plain call.
    unsafe { libc::alarm(0) };
    result
}
