// SPDX-License-Identifier: MIT OR Apache-2.0
//! A System V semaphore set of a trial.

use rustix::io::retry_on_intr;

use crate::mechanism::c_call::result;
use crate::mechanism::sem_sysv::make_set;
use crate::mechanism::{Fault, OpenError, Site};

/// The set; the end of the trial removes it by its note.
#[derive(Clone, Copy)]
pub(super) struct SemaphoreSet(i32);

impl SemaphoreSet {
    /// Makes a set of `count` semaphores, all zero.
    pub(super) fn make(site: &Site, count: i32) -> Result<Self, OpenError> {
        make_set(site, count).map(Self)
    }

    /// Adds `change` to semaphore `number`, waiting while that would make it negative.
    #[inline(always)]
    pub(super) fn change(self, number: u16, change: i16, undo: bool) -> Result<(), Fault> {
        let flags = if undo { libc::SEM_UNDO as i16 } else { 0 };
        let mut operation = libc::sembuf { sem_num: number, sem_op: change, sem_flg: flags };
        // SAFETY: one operation, ours, that lives through the call.
        retry_on_intr(|| result(unsafe { libc::semop(self.0, &raw mut operation, 1) }))
            .map(drop)
            .map_err(Fault::of("semop"))
    }
}
