// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a side is scheduled where the classes of Linux are not: ordinarily, or above all that is not real-time.

use std::io;

use crate::task;
use doorbell_results::configuration::{Placement, Scheduler};

/// The system did not take a thread into a class.
#[derive(Debug, thiserror::Error)]
#[error("{call} failed: {cause}; {cure}")]
pub struct Refused {
    /// What was asked for.
    pub call: &'static str,
    /// The system's error.
    pub cause: io::Error,
    /// What to do about it.
    pub cure: &'static str,
}

/// Puts the calling thread under what `scheduler` names.
pub fn enter(scheduler: Scheduler, _placement: &Placement) -> Result<(), Refused> {
    let failed = |call, cure| move |cause| Refused { call, cause, cure };
    match scheduler {
        Scheduler::Other => Ok(()),
        Scheduler::Fifo => {
            task::become_fifo(0).map_err(failed("a higher priority", "run as a user who may have it"))
        }
        Scheduler::Deadline | Scheduler::Slice => {
            Err(failed("sched_setattr", "measure it on Linux")(io::ErrorKind::Unsupported.into()))
        }
    }
}

/// Nothing that is inherited is known here.
pub fn set_usual() -> Option<String> {
    None
}

/// Whether the system would let a thread of ours run under `scheduler`; tried on one that ends with the question.
pub fn may_enter(scheduler: Scheduler, placement: &Placement) -> Result<(), Refused> {
    let failed = |cause| Refused { call: "a thread", cause, cure: "let more threads be made" };
    let placement = placement.clone();
    let asked = std::thread::Builder::new().spawn(move || enter(scheduler, &placement));
    asked
        .map_err(failed)?
        .join()
        .unwrap_or_else(|_| Err(failed(io::Error::other("the thread that asked is gone"))))
}
