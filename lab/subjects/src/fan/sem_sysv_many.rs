// SPDX-License-Identifier: MIT OR Apache-2.0
//! System V semaphores, as many in a set as the kernel takes.

use super::{Fan, FanEntry, FanOutContext, Needs, OpenFan};
use crate::mechanism::c_call::result;
use crate::mechanism::sem_sysv::{SemSysv, SemSysvEnd};
use crate::mechanism::{Mechanism, Notification, OpenError, Site, Unavailable};
use doorbell_harness::run_dir::Note;
use doorbell_machine::root::Root;

/// Many semaphores in one set.
#[derive(Debug)]
pub(super) struct SemSysvMany;

struct Sets {
    sets: Vec<libc::c_int>,
    per_set: u32,
}

/// Semaphores of a set where the kernel does not tell (SEMMSL,
/// semget(2)): the default of old kernels.
const OLD_DEFAULT: u64 = 250;

/// Semaphores in each set for so many receivers: all of them where the kernel allows. A semaphore's
/// number in its set has 16 bits (`sembuf`, semop(2)).
fn per_set(receivers: u64) -> u64 {
    let allowed =
        doorbell_machine::limits::read(&Root::live(), None).semaphores_per_set.unwrap_or(OLD_DEFAULT);
    receivers.min(allowed).clamp(1, 1 << 16)
}

impl Sets {
    fn end(&self, number: u32) -> SemSysvEnd {
        SemSysvEnd::of(self.sets[(number / self.per_set) as usize], (number % self.per_set) as u16)
    }
}

impl Fan for Sets {
    type Notifier = SemSysvEnd;
    type Waiter = SemSysvEnd;
    fn waiter(&self, number: u32) -> Result<SemSysvEnd, OpenError> {
        Ok(self.end(number))
    }
    fn notifier(&self, number: u32) -> Result<SemSysvEnd, OpenError> {
        Ok(self.end(number))
    }
}

impl FanEntry for SemSysvMany {
    fn name(&self) -> &'static str {
        "sem-sysv-many"
    }
    fn summary(&self) -> &'static str {
        "System V semaphores, as many in a set as the kernel takes"
    }
    fn available(&self) -> Result<(), Unavailable> {
        SemSysv::available()
    }
    fn notification(&self) -> Notification {
        SemSysv::NOTIFICATION
    }
    fn needs(&self, receivers: u64) -> Needs {
        let per_set = per_set(receivers);
        Needs { semaphore_sets: receivers.div_ceil(per_set), semaphores_per_set: per_set, ..Needs::default() }
    }
    fn open(&self, site: &Site, context: &FanOutContext) -> Result<Box<dyn OpenFan>, OpenError> {
        let per_set = per_set(context.receivers.into()) as u32;
        let mut sets = Vec::new();
        for first in (0..context.receivers).step_by(per_set as usize) {
            let count = per_set.min(context.receivers - first);
            let key = site.key()?;
            site.leave_note(Note::SystemVSemaphores(key))?;
            // SAFETY: takes integers only.
            // JUSTIFICATION: rustix has no System V semaphores.
            let set =
                unsafe { libc::semget(key, count.cast_signed(), libc::IPC_CREAT | libc::IPC_EXCL | 0o600) };
            sets.push(result(set).map_err(|error| {
                OpenError::with_cure(
                    "semget",
                    error,
                    "remove sets that nobody uses (`ipcs -s`, `ipcrm -s`) or raise /proc/sys/kernel/sem",
                )
            })?);
        }
        Ok(Box::new(Sets { sets, per_set }))
    }
}
