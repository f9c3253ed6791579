// SPDX-License-Identifier: MIT OR Apache-2.0
//! An event of Windows that resets itself: a flag in the kernel, which one waiter takes.

use std::ptr;
use std::time::Duration;

use windows_sys::Win32::System::Threading::{CreateEventW, SetEvent};

use super::{
    Explanation, Fault, Host, Link, Mechanism, Notifier, Object, OpenError, Site, Unavailable, Waiter, Woken,
    done,
};

/// The notifier sets, the waiter waits and resets by waiting.
#[derive(Debug)]
pub struct Event;

#[derive(Debug)]
pub struct EventLink(Object);

#[derive(Debug)]
pub struct EventEnd(Object);

/// An event of no name that resets itself, not set.
pub(super) fn fresh() -> Result<Object, OpenError> {
    // SAFETY: no attributes and no name; the rest are flags.
    Object::made("CreateEventW", unsafe { CreateEventW(ptr::null(), 0, 0, ptr::null()) })
}

impl Mechanism for Event {
    type Link = EventLink;
    const NAME: &'static str = "win-event";
    const COALESCES: bool = true;
    const PROCESSES: bool = false;

    fn explanation() -> Explanation {
        Explanation {
            summary: "event of Windows that resets itself",
            how: "The notifier calls SetEvent, the waiter WaitForSingleObject, which takes the flag away again.",
            kernel: "Set: take the dispatcher's lock, set the flag or give it to the first waiter at once. Wait: take it, or queue. Every call \
                     enters the kernel.",
            limits: "A flag and no count: two notifications before the waiter looks are one. The timed wait counts milliseconds and ends with \
                     the timer's tick.",
            sources: &["CreateEventW, SetEvent, WaitForSingleObject (Win32 API, Synchronization)"],
        }
    }

    fn available(_: &Host) -> Result<(), Unavailable> {
        fresh().map(drop).map_err(|error| Unavailable::because(error.to_string()))
    }
}

impl Link for EventLink {
    type Notifier = EventEnd;
    type Waiter = EventEnd;
    fn open(_: &Site) -> Result<Self, OpenError> {
        fresh().map(Self)
    }
    fn waiter(&self) -> Result<EventEnd, OpenError> {
        Ok(EventEnd(self.0.clone()))
    }
    fn notifier(&self) -> Result<EventEnd, OpenError> {
        Ok(EventEnd(self.0.clone()))
    }
}

impl Notifier for EventEnd {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        // SAFETY: the handle is open.
        done("SetEvent", unsafe { SetEvent(self.0.raw()) })
    }
}

impl Waiter for EventEnd {
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
