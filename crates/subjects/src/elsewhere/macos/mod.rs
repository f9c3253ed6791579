// SPDX-License-Identifier: MIT OR Apache-2.0
//! The means of notification of macOS, one file each. Written by Apple's headers and manual pages and type-checked; nobody has run them
//! yet (`book/other-systems.md`).

pub use super::{
    Carries, Entry, Explanation, Fault, Host, Link, Mechanism, Notifier, Notifiers, OpenError, Site,
    Unavailable, Waiter, Woken,
};
use super::{null, spin};

pub mod address;
pub mod dispatch_semaphore;
pub mod kqueue_user;
pub mod mach_semaphore;
pub mod pipe;
pub mod sem_posix_named;

/// Every mechanism, in the order `doorbell list` shows. The one list to extend.
pub fn all() -> &'static [&'static dyn Entry] {
    &[
        &null::Null,
        &spin::Spin,
        &sem_posix_named::SemPosixNamed,
        &mach_semaphore::MachSemaphore,
        &address::SyncWaitOnAddress,
        &dispatch_semaphore::DispatchSemaphore,
        &kqueue_user::KqueueUser,
        &pipe::Pipe,
    ]
}
