// SPDX-License-Identifier: MIT OR Apache-2.0
//! An I/O completion port to which completions are posted by hand: the event loop of Windows, woken from another thread.

use std::ptr;
use std::time::Duration;

use windows_sys::Win32::Foundation::{GetLastError, INVALID_HANDLE_VALUE, WAIT_TIMEOUT};
use windows_sys::Win32::System::IO::{
    CreateIoCompletionPort, GetQueuedCompletionStatus, PostQueuedCompletionStatus,
};

use doorbell_harness::wait_on_address::milliseconds;

use super::{
    Carries, Explanation, Fault, Host, Link, Mechanism, Notifier, Object, OpenError, Site, Unavailable,
    Waiter, Woken, done,
};

/// The notifier posts a completion, the waiter takes it from the port.
#[derive(Debug)]
pub struct CompletionPort;

#[derive(Debug)]
pub struct PortLink(Object);

#[derive(Debug)]
pub struct PortEnd(Object);

fn fresh() -> Result<Object, OpenError> {
    // SAFETY: no file and no port that exists: a new port for one thread at a time.
    Object::made("CreateIoCompletionPort", unsafe {
        CreateIoCompletionPort(INVALID_HANDLE_VALUE, ptr::null_mut(), 0, 1)
    })
}

impl PortEnd {
    #[inline]
    fn take(&self, timeout: Option<Duration>) -> Result<bool, Fault> {
        let (mut bytes, mut key, mut overlapped) = (0, 0, ptr::null_mut());
        // SAFETY: the handle is open and all three are ours.
        let taken = unsafe {
            GetQueuedCompletionStatus(
                self.0.raw(),
                &raw mut bytes,
                &raw mut key,
                &raw mut overlapped,
                milliseconds(timeout),
            )
        };
        // SAFETY: takes nothing.
        if taken == 0 && unsafe { GetLastError() } == WAIT_TIMEOUT {
            return Ok(false);
        }
        done("GetQueuedCompletionStatus", taken).map(|()| true)
    }
}

impl Mechanism for CompletionPort {
    type Link = PortLink;
    const NAME: &'static str = "iocp-post";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Word;
    const PROCESSES: bool = false;

    fn explanation() -> Explanation {
        Explanation {
            summary: "completion posted to an I/O completion port",
            how: "The notifier calls PostQueuedCompletionStatus, the waiter GetQueuedCompletionStatus, where the completions of its files would \
                  come as well.",
            kernel: "A queue in the kernel: a post takes memory for an entry, appends it, and wakes a waiter if fewer threads run than the port \
                     was made for, here one.",
            limits: "Entries take kernel memory until they are taken. The port has no name, so a process must be handed it. The timed wait \
                     counts milliseconds.",
            sources: &["PostQueuedCompletionStatus, GetQueuedCompletionStatus (Win32 API, File I/O)"],
        }
    }

    fn available(_: &Host) -> Result<(), Unavailable> {
        fresh().map(drop).map_err(|error| Unavailable::because(error.to_string()))
    }
}

impl Link for PortLink {
    type Notifier = PortEnd;
    type Waiter = PortEnd;
    fn open(_: &Site) -> Result<Self, OpenError> {
        fresh().map(Self)
    }
    fn waiter(&self) -> Result<PortEnd, OpenError> {
        Ok(PortEnd(self.0.clone()))
    }
    fn notifier(&self) -> Result<PortEnd, OpenError> {
        Ok(PortEnd(self.0.clone()))
    }
}

impl Notifier for PortEnd {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        // SAFETY: the handle is open; a completion of no operation is allowed.
        done("PostQueuedCompletionStatus", unsafe {
            PostQueuedCompletionStatus(self.0.raw(), 0, 0, ptr::null())
        })
    }
}

impl Waiter for PortEnd {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        self.take(None).map(drop)
    }
    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        self.take(Some(timeout)).map(Woken::when)
    }
    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        self.take(Some(Duration::ZERO))
    }
}
