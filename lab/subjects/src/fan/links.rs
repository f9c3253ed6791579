// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mechanisms of Linux that are fanned out by a link for each
//! receiver, and what so many links need.

use super::each::each;
use super::{FanEntry, Needs};
use crate::mechanism::condvar::Condvar;
use crate::mechanism::eventfd::EventfdRead;
use crate::mechanism::futex::FutexShared;
use crate::mechanism::sem_posix::SemPosix;
use crate::mechanism::sem_posix_named::SemPosixNamed;
use crate::mechanism::sem_sysv::SemSysv;
use crate::mechanism::signal_sigwaitinfo::SignalSigwaitinfo;
use crate::mechanism::unix_dgram::UnixDgram;

/// In memory that is mapped before the receivers start.
const MEMORY: fn(u64) -> Needs = |_| Needs::default();
/// A link's two descriptors, inherited by all, and the notifier's own for each.
const DESCRIPTORS: fn(u64) -> Needs = |receivers| Needs { descriptors: 3 * receivers, ..Needs::default() };
/// A file of one page for each, which the notifier maps.
const FILES: fn(u64) -> Needs =
    |receivers| Needs { shm_bytes: receivers * 4096, mappings: receivers, ..Needs::default() };
const SETS: fn(u64) -> Needs =
    |receivers| Needs { semaphore_sets: receivers, semaphores_per_set: 1, ..Needs::default() };
/// One for each may be on its way.
const SIGNALS: fn(u64) -> Needs = |receivers| Needs { queued_signals: receivers, ..Needs::default() };

pub(super) const SEM_POSIX_NAMED: FanEntry = each::<SemPosixNamed>(FILES);
pub(super) const SEM_POSIX: FanEntry = each::<SemPosix>(MEMORY);
pub(super) const SEM_SYSV: FanEntry = each::<SemSysv>(SETS);
pub(super) const FUTEX: FanEntry = each::<FutexShared>(MEMORY);
pub(super) const EVENTFD: FanEntry = each::<EventfdRead>(DESCRIPTORS);
pub(super) const UNIX_DGRAM: FanEntry = each::<UnixDgram>(DESCRIPTORS);
pub(super) const CONDVAR: FanEntry = each::<Condvar>(MEMORY);
pub(super) const SIGNAL: FanEntry = each::<SignalSigwaitinfo>(SIGNALS);
