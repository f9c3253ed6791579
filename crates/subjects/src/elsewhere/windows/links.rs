// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mechanisms of Windows that are fanned out by a link for each receiver.

use super::each::Each;
use super::null::Null;
use super::{FanEntry, Needs};
use crate::mechanism::system::address::WaitOnAddress;
use crate::mechanism::system::completion_port::CompletionPort;
use crate::mechanism::system::event::Event;
use crate::mechanism::system::named_pipe::NamedPipe;
use crate::mechanism::system::semaphore::Semaphore;
use crate::mechanism::system::srw_condvar::SrwCondvar;

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
    &Each::<Semaphore>::with(NOTHING),
    &Each::<Event>::with(NOTHING),
    &Each::<WaitOnAddress>::with(NOTHING),
    &Each::<SrwCondvar>::with(NOTHING),
    &Each::<NamedPipe>::with(NOTHING),
    &Each::<CompletionPort>::with(NOTHING),
];
