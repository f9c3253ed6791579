// SPDX-License-Identifier: MIT OR Apache-2.0
//! A System V semaphore set of a trial.

use crate::mechanism::{Fault, OpenError, Site};
use doorbell_harness::run_dir::Note;

/// The set; the end of the trial removes it by its note.
#[derive(Debug, Clone, Copy)]
pub(super) struct SemaphoreSet(i32);

impl SemaphoreSet {
    /// Makes a set of `count` semaphores, all zero.
    pub(super) fn make(site: &Site, count: i32) -> Result<Self, OpenError> {
        let key = site.key()?;
        site.leave_note(Note::SystemVSemaphores(key))?;
        // SAFETY: takes integers only.
        // JUSTIFICATION: rustix has no System V semaphores.
        let id = unsafe { libc::semget(key, count, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) };
        if id < 0 {
            return Err(OpenError::with_cure(
                "semget",
                std::io::Error::last_os_error(),
                "remove left-over sets (`ipcs -s`, `ipcrm -s ID`) or raise kernel.sem",
            ));
        }
        Ok(Self(id))
    }

    /// Adds `change` to semaphore `number`, waiting while that would make it negative.
    #[inline(always)]
    pub(super) fn change(self, number: u16, change: i16, undo: bool) -> Result<(), Fault> {
        let flags = if undo { libc::SEM_UNDO as i16 } else { 0 };
        let mut operation = libc::sembuf { sem_num: number, sem_op: change, sem_flg: flags };
        loop {
            // SAFETY: one operation, ours, that lives through the call.
            if unsafe { libc::semop(self.0, &raw mut operation, 1) } == 0 {
                return Ok(());
            }
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(Fault::new("semop", error));
            }
        }
    }
}
