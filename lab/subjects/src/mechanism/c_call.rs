// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls of the C library that neither rustix nor the standard library wraps, and how they report.

use std::ffi::CString;
use std::io;
use std::ptr;

use rustix::io::Errno;

use super::{OpenError, Unavailable};

/// A key under which the probes ask for objects of System V: "bell"
/// in ASCII. Whether there is one does not matter.
pub(super) const PROBE_KEY: libc::key_t = i32::from_be_bytes(*b"bell");

/// The error of the call just made.
pub(super) fn errno() -> Errno {
    // A number that is none of the kernel's cannot come from `errno`.
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

/// What a call returned that says -1 when it refuses.
#[inline]
pub(crate) fn result<T: Into<i64> + Copy>(value: T) -> Result<T, Errno> {
    if value.into() == -1 { Err(errno()) } else { Ok(value) }
}

/// Has `handler` take `signal`, with `flags` and an empty mask.
///
/// # Safety
/// The handler must do only what a signal handler may (signal-safety(7)).
pub(crate) unsafe fn handle(
    signal: libc::c_int,
    handler: extern "C" fn(libc::c_int),
    flags: libc::c_int,
) -> Result<(), Errno> {
    // SAFETY: `sigaction` is plain data, valid when zero.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = flags;
    // SAFETY: `action` lives through the call; the handler is the caller's promise.
    // JUSTIFICATION: rustix leaves signal handlers to libc.
    result(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) }).map(drop)
}

/// A timer of the kernel that signals the thread that made it.
pub(crate) struct ThreadTimer(pub(crate) libc::timer_t);

impl ThreadTimer {
    /// One that sends `signal`, not set.
    pub(crate) fn new(signal: libc::c_int) -> Result<Self, Errno> {
        // SAFETY: `sigevent` is plain data, valid when zero.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        let mut timer = ptr::null_mut();
        // SAFETY: event and timer live through the call.
        // JUSTIFICATION: rustix has no POSIX timers.
        result(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) })?;
        Ok(Self(timer))
    }
}

impl Drop for ThreadTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is ours and not used after this.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// `name` as the C library takes it.
pub(crate) fn c_string(name: &str) -> Result<CString, OpenError> {
    CString::new(name).map_err(OpenError::of("CString::new"))
}

/// Asking for an object that nobody has made must fail with its absence and with nothing else.
pub(super) fn absent_or_made<T>(call: &str, asked: Result<T, Errno>) -> Result<(), Unavailable> {
    match asked {
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(Unavailable::because(format!("{call} is refused here: {error}"))),
    }
}
