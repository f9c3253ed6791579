// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mechanisms of Linux that are fanned out by a link for each
//! receiver, and what so many links need.

use super::Needs;
use super::each::Each;
use crate::mechanism::condvar::Condvar;
use crate::mechanism::eventfd::EventfdRead;
use crate::mechanism::futex::FutexShared;
use crate::mechanism::sem_posix::SemPosix;
use crate::mechanism::sem_posix_named::SemPosixNamed;
use crate::mechanism::sem_sysv::SemSysv;
use crate::mechanism::signal_sigwaitinfo::SignalSigwaitinfo;
use crate::mechanism::unix_dgram::UnixDgram;

/// In memory that is mapped before the receivers start.
const MEMORY: fn(u64) -> Needs = |_| NONE;
const NONE: Needs = Needs {
    descriptors: 0,
    semaphore_sets: 0,
    semaphores_per_set: 0,
    shm_bytes: 0,
    mappings: 0,
    queued_signals: 0,
};
/// A link's two descriptors, inherited by all, and the notifier's own for each.
const DESCRIPTORS: fn(u64) -> Needs = |receivers| Needs { descriptors: 3 * receivers, ..NONE };
/// A file of one page for each, which the notifier maps.
const FILES: fn(u64) -> Needs =
    |receivers| Needs { shm_bytes: receivers * 4096, mappings: receivers, ..NONE };
const SETS: fn(u64) -> Needs = |receivers| Needs { semaphore_sets: receivers, semaphores_per_set: 1, ..NONE };
/// One for each may be on its way.
const SIGNALS: fn(u64) -> Needs = |receivers| Needs { queued_signals: receivers, ..NONE };

pub(super) const SEM_POSIX_NAMED: Each<SemPosixNamed> = Each::with(FILES);
pub(super) const SEM_POSIX: Each<SemPosix> = Each::with(MEMORY);
pub(super) const SEM_SYSV: Each<SemSysv> = Each::with(SETS);
pub(super) const FUTEX: Each<FutexShared> = Each::with(MEMORY);
pub(super) const EVENTFD: Each<EventfdRead> = Each::with(DESCRIPTORS);
pub(super) const UNIX_DGRAM: Each<UnixDgram> = Each::with(DESCRIPTORS);
pub(super) const CONDVAR: Each<Condvar> = Each::with(MEMORY);
pub(super) const SIGNAL: Each<SignalSigwaitinfo> = Each::with(SIGNALS);
