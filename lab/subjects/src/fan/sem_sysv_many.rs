// SPDX-License-Identifier: MIT OR Apache-2.0
//! System V semaphores, as many in a set as the kernel takes.

use super::{Fan, FanEntry, Needs};
use crate::mechanism::sem_sysv::{SemSysv, SemSysvEnd, make_set};
use crate::mechanism::{Mechanism, OpenError};
use doorbell_machine::root::Root;

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

pub(super) const MANY: FanEntry = FanEntry {
    name: "sem-sysv-many",
    summary: "System V semaphores, as many in a set as the kernel takes",
    available: SemSysv::available,
    needs: |receivers| {
        let per_set = per_set(receivers);
        Needs { semaphore_sets: receivers.div_ceil(per_set), semaphores_per_set: per_set, ..Needs::default() }
    },
    notification: SemSysv::NOTIFICATION,
    shared: false,
    open: |site, context| {
        let per_set = per_set(context.receivers.into()) as u32;
        let mut sets = Vec::new();
        for first in (0..context.receivers).step_by(per_set as usize) {
            let count = per_set.min(context.receivers - first);
            sets.push(make_set(site, count.cast_signed())?);
        }
        Ok(Box::new(Sets { sets, per_set }))
    },
};
