// SPDX-License-Identifier: MIT OR Apache-2.0
//! The means of notification of Windows, one file each.

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::sync::Arc;
use std::time::Duration;

use windows_sys::Win32::Foundation::{HANDLE, WAIT_OBJECT_0, WAIT_TIMEOUT};
use windows_sys::Win32::System::Threading::WaitForSingleObject;

pub use super::{
    Carries, Entry, Explanation, Fault, Host, Link, Mechanism, Notifier, Notifiers, OpenError, Site,
    Unavailable, Waiter, Woken,
};
use super::{null, spin};
use doorbell_harness::wait_on_address::milliseconds;

pub mod address;
pub mod completion_port;
pub mod event;
pub mod named_pipe;
pub mod semaphore;
pub mod srw_condvar;

/// Every mechanism, in the order `doorbell list` shows. The one list to extend.
pub fn all() -> &'static [&'static dyn Entry] {
    &[
        &null::Null,
        &spin::Spin,
        &semaphore::Semaphore,
        &event::Event,
        &address::WaitOnAddress,
        &srw_condvar::SrwCondvar,
        &named_pipe::NamedPipe,
        &completion_port::CompletionPort,
    ]
}

/// A handle, closed when the last of its holders is gone; both ends of a link hold it.
#[derive(Debug, Clone)]
struct Object(Arc<OwnedHandle>);

impl Object {
    /// What `call` made; null is its refusal.
    fn made(call: &'static str, handle: HANDLE) -> Result<Self, OpenError> {
        if handle.is_null() {
            return Err(OpenError::call(call, io::Error::last_os_error()));
        }
        // SAFETY: the call has just made it, and nobody else closes it.
        Ok(Self(Arc::new(unsafe { OwnedHandle::from_raw_handle(handle) })))
    }

    #[inline]
    fn raw(&self) -> HANDLE {
        self.0.as_raw_handle()
    }

    /// Waits until the object is signalled, for `timeout` at most or for ever.
    #[inline]
    fn wait(&self, timeout: Option<Duration>) -> Result<bool, Fault> {
        // SAFETY: the handle is open as long as this holds it.
        match unsafe { WaitForSingleObject(self.raw(), milliseconds(timeout)) } {
            WAIT_OBJECT_0 => Ok(true),
            WAIT_TIMEOUT => Ok(false),
            _ => Err(Fault::new("WaitForSingleObject", io::Error::last_os_error())),
        }
    }
}

/// What a call that answers with zero when it fails has said.
#[inline]
fn done(call: &'static str, answer: windows_sys::core::BOOL) -> Result<(), Fault> {
    if answer == 0 { Err(Fault::new(call, io::Error::last_os_error())) } else { Ok(()) }
}
