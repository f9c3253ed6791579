// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads of the library.

use std::mem::MaybeUninit;

/// Runs `start`, which starts a thread: with all signals blocked, as the thread then has them for
/// good. They are the program's, which may have blocked one everywhere to read it from a signalfd,
/// or have a handler that expects a thread of its own.
pub(crate) fn without_signals<R>(start: impl FnOnce() -> R) -> R {
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both are valid for writes, and `all` is filled before it is read. Cannot fail: the first
    // argument is one of three.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let restored = Restored(before);
    let started = start();
    drop(restored);
    started
}

/// Puts back what was blocked before, also if a panic passes.
struct Restored(MaybeUninit<libc::sigset_t>);

impl Drop for Restored {
    fn drop(&mut self) {
        // SAFETY: `pthread_sigmask` filled it.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, self.0.as_ptr(), std::ptr::null_mut()) };
    }
}
