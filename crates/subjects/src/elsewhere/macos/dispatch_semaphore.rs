// SPDX-License-Identifier: MIT OR Apache-2.0
//! A semaphore of libdispatch: a count in user mode, and a Mach semaphore behind it for those who must sleep.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use super::{
    Explanation, Fault, Host, Link, Mechanism, Notifier, OpenError, Site, Unavailable, Waiter, Woken,
};

const NOW: u64 = 0;
const FOREVER: u64 = u64::MAX;

unsafe extern "C" {
    fn dispatch_semaphore_create(value: isize) -> *mut c_void;
    fn dispatch_semaphore_signal(semaphore: *mut c_void) -> isize;
    fn dispatch_semaphore_wait(semaphore: *mut c_void, timeout: u64) -> isize;
    fn dispatch_time(when: u64, delta_ns: i64) -> u64;
    fn dispatch_release(object: *mut c_void);
}

/// The notifier signals, the waiter waits.
#[derive(Debug)]
pub struct DispatchSemaphore;

#[derive(Debug)]
struct Made(*mut c_void);

// SAFETY: made for concurrent callers.
unsafe impl Send for Made {}
// SAFETY: as above.
unsafe impl Sync for Made {}

impl Drop for Made {
    fn drop(&mut self) {
        // SAFETY: made by `fresh`, and nobody waits on it any more: its count is not below that of its making.
        unsafe { dispatch_release(self.0) };
    }
}

fn fresh() -> Result<Made, OpenError> {
    // SAFETY: takes a number.
    let made = unsafe { dispatch_semaphore_create(0) };
    if made.is_null() {
        return Err(OpenError::call("dispatch_semaphore_create", "no semaphore was made"));
    }
    Ok(Made(made))
}

#[derive(Debug)]
pub struct DispatchLink(Arc<Made>);

#[derive(Debug)]
pub struct DispatchEnd(Arc<Made>);

impl Mechanism for DispatchSemaphore {
    type Link = DispatchLink;
    const NAME: &'static str = "dispatch-semaphore";
    const COALESCES: bool = false;
    const PROCESSES: bool = false;

    fn explanation() -> Explanation {
        Explanation {
            summary: "semaphore of libdispatch (threads only)",
            how: "The notifier calls dispatch_semaphore_signal, the waiter dispatch_semaphore_wait.",
            kernel: "Nothing while the count is above zero; below, a Mach semaphore is waited for and signalled.",
            limits: "Threads of one process. Released with a count below that of its making it ends the program. Never run here: type-checked \
                     only.",
            sources: &["dispatch_semaphore_create(3), dispatch/semaphore.h"],
        }
    }

    fn available(_: &Host) -> Result<(), Unavailable> {
        fresh().map(drop).map_err(|error| Unavailable::because(error.to_string()))
    }
}

impl Link for DispatchLink {
    type Notifier = DispatchEnd;
    type Waiter = DispatchEnd;
    fn open(_: &Site) -> Result<Self, OpenError> {
        Ok(Self(Arc::new(fresh()?)))
    }
    fn waiter(&self) -> Result<DispatchEnd, OpenError> {
        Ok(DispatchEnd(self.0.clone()))
    }
    fn notifier(&self) -> Result<DispatchEnd, OpenError> {
        Ok(DispatchEnd(self.0.clone()))
    }
}

impl Notifier for DispatchEnd {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        // SAFETY: alive as long as this holds it. It answers whether somebody was woken.
        unsafe { dispatch_semaphore_signal(self.0.0) };
        Ok(())
    }
}

impl DispatchEnd {
    #[inline]
    fn take(&self, until: u64) -> bool {
        // SAFETY: as above.
        unsafe { dispatch_semaphore_wait(self.0.0, until) == 0 }
    }
}

impl Waiter for DispatchEnd {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        while !self.take(FOREVER) {}
        Ok(())
    }
    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let ns = i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX);
        // SAFETY: takes and returns numbers.
        Ok(Woken::when(self.take(unsafe { dispatch_time(NOW, ns) })))
    }
    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        Ok(self.take(NOW))
    }
}
