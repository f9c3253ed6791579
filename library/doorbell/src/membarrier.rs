// SPDX-License-Identifier: MIT OR Apache-2.0
//! A full fence on other processors, by `membarrier(2)`.
//!
//! Within a process the kernel interrupts the processors that run its threads. Between processes it
//! interrupts all that run one of those who registered for it, wherever they came from: it must be
//! the notifier that is registered. (Without that no fence is run there, and one wake-up in a
//! million was seen to be lost.) A thread that is not running has passed a fence when
//! it was switched away from.

use crate::error::WaitError;
use crate::generation::generation;
use crate::mapping::Scope;
use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};
use std::sync::atomic::{AtomicU64, Ordering};

/// For each scope: in which generation of this process (plus one) it
/// was registered, or found that it cannot be.
static REGISTERED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
const REFUSED: u64 = u64::MAX;

/// Registers this process, so that others can have a fence run wherever its threads are. False if
/// the kernel, or a sandbox, does not have it.
pub(crate) fn register(scope: Scope) -> bool {
    let (slot, command) = match scope {
        Scope::Threads => (&REGISTERED[0], MembarrierCommand::RegisterPrivateExpedited),
        Scope::Processes => (&REGISTERED[1], MembarrierCommand::RegisterGlobalExpedited),
    };
    let ours = u64::from(generation()) + 1;
    match slot.load(Ordering::Relaxed) {
        REFUSED => false,
        found if found == ours => true,
        _ => {
            let registered = membarrier(command).is_ok();
            slot.store(if registered { ours } else { REFUSED }, Ordering::Relaxed);
            registered
        }
    }
}

/// Can this process run such a fence?
pub(crate) fn can_run(scope: Scope) -> bool {
    match scope {
        Scope::Threads => register(scope),
        // It needs no registration.
        Scope::Processes => membarrier_query().contains_command(MembarrierCommand::GlobalExpedited),
    }
}

/// Runs a full fence on every processor that runs somebody registered.
pub(crate) fn run(scope: Scope) -> Result<(), WaitError> {
    let command = match scope {
        Scope::Threads => MembarrierCommand::PrivateExpedited,
        Scope::Processes => MembarrierCommand::GlobalExpedited,
    };
    membarrier(command).map_err(|errno| WaitError::Os { call: "membarrier", errno })
}
