// SPDX-License-Identifier: MIT OR Apache-2.0
//! A semaphore of Windows: a count in the kernel.

use std::ptr;
use std::time::Duration;

use windows_sys::Win32::System::Threading::{CreateSemaphoreW, ReleaseSemaphore};

use super::{
    Explanation, Fault, Host, Link, Mechanism, Notifier, Object, OpenError, Site, Unavailable, Waiter, Woken,
    done,
};

/// The notifier releases, the waiter waits.
#[derive(Debug)]
pub struct Semaphore;

#[derive(Debug)]
pub struct SemaphoreLink(Object);

#[derive(Debug)]
pub struct SemaphoreEnd(Object);

fn fresh() -> Result<Object, OpenError> {
    // SAFETY: no attributes and no name; both counts are numbers.
    Object::made("CreateSemaphoreW", unsafe { CreateSemaphoreW(ptr::null(), 0, i32::MAX, ptr::null()) })
}

impl Mechanism for Semaphore {
    type Link = SemaphoreLink;
    const NAME: &'static str = "win-semaphore";
    const COALESCES: bool = false;
    const PROCESSES: bool = false;

    fn explanation() -> Explanation {
        Explanation {
            summary: "semaphore of Windows",
            how: "The notifier calls ReleaseSemaphore with one, the waiter WaitForSingleObject. Each link has a semaphore of its own, without a \
                  name: both sides are threads of one process.",
            kernel: "Release: take the dispatcher's lock, add one, make the first waiter ready. Wait: take one, or queue and give up the CPU. \
                     Every call enters the kernel, whether somebody waits or not.",
            limits: "The count goes to the number it was made with, here 2^31 - 1. What bounds their number is handles: 16 million in a \
                     process. The timed wait counts milliseconds and ends with the timer's tick.",
            sources: &[
                "CreateSemaphoreW, ReleaseSemaphore, WaitForSingleObject (Win32 API, Synchronization)",
            ],
        }
    }

    fn available(_: &Host) -> Result<(), Unavailable> {
        fresh().map(drop).map_err(|error| Unavailable::because(error.to_string()))
    }
}

impl Link for SemaphoreLink {
    type Notifier = SemaphoreEnd;
    type Waiter = SemaphoreEnd;
    fn open(_: &Site) -> Result<Self, OpenError> {
        fresh().map(Self)
    }
    fn waiter(&self) -> Result<SemaphoreEnd, OpenError> {
        Ok(SemaphoreEnd(self.0.clone()))
    }
    fn notifier(&self) -> Result<SemaphoreEnd, OpenError> {
        Ok(SemaphoreEnd(self.0.clone()))
    }
}

impl Notifier for SemaphoreEnd {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        // SAFETY: the handle is open; the count before is not asked for.
        done("ReleaseSemaphore", unsafe { ReleaseSemaphore(self.0.raw(), 1, ptr::null_mut()) })
    }
}

impl Waiter for SemaphoreEnd {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        self.0.wait(None).map(drop)
    }
    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        self.0.wait(Some(timeout)).map(Woken::when)
    }
    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        self.0.wait(Some(Duration::ZERO))
    }
}
