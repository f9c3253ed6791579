// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `doorbell tasks` measures: kinds of task that hand over to
//! one another, and what it takes to make and reap one.
//!
//! Every kind drives the same task context ([`TaskContext`]): the same ready queue, the same turn
//! with the same count and the same working set. They differ in how control gets from one task to
//! the next, and each file here is one such way. A trial is many generations: N tasks are made,
//! hand over N × Y times, and are reaped; each phase is timed by itself, so that what is
//! said of a hand-off has no creation in it and the other way round.
//!
//! Adding a kind is adding a file here and one line in [`all`].

use crate::mechanism::{Explanation, Unavailable};
use doorbell_harness::side::SideError;
use doorbell_results::nearest::{self, Unknown};
use doorbell_results::record::Subject;

mod async_executor;
mod call;
mod driver;
mod family;
mod generations;
mod life_clone;
mod life_fork;
mod life_fork_exec;
mod life_future;
mod life_posix_spawn;
mod life_stackful;
mod life_thread;
mod life_vfork;
pub mod limits;
mod node;
mod process_eventfd;
mod process_futex;
mod process_pair;
mod process_pipe;
mod process_yield;
mod queue;
mod rotating;
mod stack_pool;
mod stack_switch;
mod stackful;
mod stackful_bare;
mod stackless;
mod stackless_rotating;
pub mod task_context;
mod tasks;
mod thread_futex;
mod thread_yield;
pub mod timer_ticks;
mod tokio_current;

pub use doorbell_results::record::subject::{MadeOf, Measured};
pub use driver::Driver;
pub use family::Tasks;
pub use generations::Generations;
pub use task_context::TaskContext;
pub use thread_yield::IN_A_ROW;

/// What one task takes of what the machine has; how many there can be follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    pub tasks: u64,
    pub descriptors: u64,
    pub mappings: u64,
    /// Memory, the kernel's included, bytes: an estimate for Linux on x86-64, on the safe side.
    /// Every run with hand-offs measures it.
    pub bytes: u64,
}

pub trait TaskKind: Sync {
    /// The name on the command line and in result files.
    fn name(&self) -> &'static str;
    /// The text of `doorbell explain`.
    fn explanation(&self) -> Explanation;
    fn measured(&self) -> Measured {
        Measured::HandOffs
    }
    /// What its tasks are to the kernel.
    fn made_of(&self) -> MadeOf;
    /// Whether a task sleeps while others have their turns, so that
    /// each hand-off is at least one switch of the kernel's.
    fn sleeps(&self) -> bool {
        self.made_of() != MadeOf::Code && self.measured() == Measured::HandOffs
    }
    fn needs(&self) -> Needs;
    /// Whether this machine has it.
    fn available(&self) -> Result<(), Unavailable> {
        Ok(())
    }
    /// Whether its tasks can have so many turns each.
    fn takes(&self, yields: u32) -> bool {
        let _ = yields;
        true
    }
    /// Whether it is part of a run that names no kind.
    fn usual(&self) -> bool {
        true
    }
    /// Lets one generation of tasks live: makes them, lets them take all their turns, reaps them.
    /// What it does is timed to its end.
    fn generation(&self, task_context: &TaskContext, generations: &mut Generations) -> Result<(), SideError>;
    /// Adds to the record what it has to say of all generations
    /// beside their times; called once, after the last.
    fn conclude(&self, task_context: &TaskContext, generations: &mut Generations) {
        let _ = (task_context, generations);
    }
}

impl dyn TaskKind {
    /// What it is, as it is stored with what was measured.
    pub fn subject(&self) -> Subject {
        Subject::Tasks { made_of: self.made_of(), measured: self.measured(), sleeps: self.sleeps() }
    }
}

/// Every kind, in the order `doorbell list` shows. The one list to extend.
// A crate that inlined it would compile every loop behind it once more.
#[inline(never)]
pub fn all() -> &'static [&'static dyn TaskKind] {
    &[
        &call::Call,
        &stackless::Stackless,
        &stackful::Stackful,
        &stackful_bare::StackfulBare,
        &tokio_current::Tokio,
        &async_executor::AsyncExecutor,
        &thread_futex::ThreadFutex,
        &thread_yield::ThreadYield,
        &process_futex::ProcessFutex,
        &process_pipe::ProcessPipe,
        &process_eventfd::ProcessEventfd,
        &process_yield::ProcessYield,
        &life_future::LifeFuture,
        &life_stackful::LifeStackful,
        &life_thread::LifeThread,
        &life_fork::LifeFork,
        &life_fork_exec::LifeForkExec,
        &life_vfork::LifeVfork,
        &life_posix_spawn::LifePosixSpawn,
        &life_clone::LifeClone,
        &stackless_rotating::StacklessRotating,
        &process_pair::ProcessPair,
        &process_pair::ProcessPairRotating,
        &timer_ticks::TimerTicks,
    ]
}

/// The kind called `name`, or the nearest name if there is none.
pub fn find(name: &str) -> Result<&'static dyn TaskKind, Unknown> {
    nearest::find("kind of task", all().iter().copied(), |kind| kind.name(), name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_is_found_and_none_is_used_by_a_mechanism_or_an_operation() {
        let mut names: BTreeSet<&str> = crate::mechanism::all().iter().map(|entry| entry.name()).collect();
        names.extend(crate::operation::all().iter().map(|operation| operation.name));
        for kind in all() {
            assert!(names.insert(kind.name()), "{} is used twice", kind.name());
            assert_eq!(find(kind.name()).unwrap().name(), kind.name());
        }
    }
}
