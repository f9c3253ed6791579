// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mechanisms of macOS that are fanned out by a link for each receiver.

use super::each::Each;
use super::null::Null;
use super::{FanEntry, Needs};
use crate::mechanism::system::address::SyncWaitOnAddress;
use crate::mechanism::system::dispatch_semaphore::DispatchSemaphore;
use crate::mechanism::system::kqueue_user::KqueueUser;
use crate::mechanism::system::mach_semaphore::MachSemaphore;
use crate::mechanism::system::pipe::Pipe;
use crate::mechanism::system::sem_posix_named::SemPosixNamed;

/// What a link takes is counted by nobody in advance: the system refuses the one that is too many.
const NOTHING: fn(u64) -> Needs = |_| Needs {
    descriptors: 0,
    semaphore_sets: 0,
    semaphores_per_set: 0,
    shm_bytes: 0,
    mappings: 0,
    queued_signals: 0,
};

/// Every way. The one list to extend.
pub(super) static ALL: &[&dyn FanEntry] = &[
    &Null,
    &Each::<SemPosixNamed>::with(NOTHING),
    &Each::<MachSemaphore>::with(NOTHING),
    &Each::<SyncWaitOnAddress>::with(NOTHING),
    &Each::<DispatchSemaphore>::with(NOTHING),
    &Each::<KqueueUser>::with(NOTHING),
    &Each::<Pipe>::with(NOTHING),
];
