// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mechanisms of systems that are not Linux as a fan-out uses them: a link of its own for each receiver.

use doorbell_results::nearest::{self, Unknown};

pub use doorbell_harness::fanout::fan::{Fan, FanEntry, Hall, Needs, OpenFan};

use self::each::Each;
pub use self::family::FanOuts;
use crate::mechanism::system;

#[path = "../fan/each.rs"]
mod each;
#[path = "../fan/family.rs"]
mod family;
#[path = "../fan/limits.rs"]
pub mod limits;
#[path = "../fan/null.rs"]
mod null;

/// What is fanned out where nothing is named: what the study of semaphores did.
pub const USUAL: &str = if cfg!(windows) { "win-semaphore" } else { "sem-posix-named" };

/// What a link takes is counted by nobody in advance: the system refuses the one that is too many.
const NOTHING: fn(u64) -> Needs = |_| Needs {
    descriptors: 0,
    semaphore_sets: 0,
    semaphores_per_set: 0,
    shm_bytes: 0,
    mappings: 0,
    queued_signals: 0,
};

/// Every way, in the order of the tables: the control, and those of the system. The one list to extend.
static ALL: &[&dyn FanEntry] = &[
    &null::Null,
    #[cfg(windows)]
    &Each::<system::semaphore::Semaphore>::with(NOTHING),
    #[cfg(windows)]
    &Each::<system::event::Event>::with(NOTHING),
    #[cfg(windows)]
    &Each::<system::address::WaitOnAddress>::with(NOTHING),
    #[cfg(windows)]
    &Each::<system::srw_condvar::SrwCondvar>::with(NOTHING),
    #[cfg(windows)]
    &Each::<system::named_pipe::NamedPipe>::with(NOTHING),
    #[cfg(windows)]
    &Each::<system::completion_port::CompletionPort>::with(NOTHING),
    #[cfg(target_os = "macos")]
    &Each::<system::sem_posix_named::SemPosixNamed>::with(NOTHING),
    #[cfg(target_os = "macos")]
    &Each::<system::mach_semaphore::MachSemaphore>::with(NOTHING),
    #[cfg(target_os = "macos")]
    &Each::<system::address::SyncWaitOnAddress>::with(NOTHING),
    #[cfg(target_os = "macos")]
    &Each::<system::dispatch_semaphore::DispatchSemaphore>::with(NOTHING),
    #[cfg(target_os = "macos")]
    &Each::<system::kqueue_user::KqueueUser>::with(NOTHING),
    #[cfg(target_os = "macos")]
    &Each::<system::pipe::Pipe>::with(NOTHING),
];

/// The list.
pub fn all() -> &'static [&'static dyn FanEntry] {
    ALL
}

/// The way called `name`, or the nearest name if there is none.
pub fn find(name: &str) -> Result<&'static dyn FanEntry, Unknown> {
    nearest::find("fan-out", all().iter().copied(), |fan| fan.name(), name)
}
