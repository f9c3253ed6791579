// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `doorbell tasks` measures: kinds of task that hand over to
//! one another, and what it takes to make and reap one.
//!
//! Every kind drives the same task context (`TaskContext`): the same ready queue, the same turn
//! with the same count and the same working set. They differ in how control gets from one task to
//! the next, and each file here is one such way. A trial is many generations: N tasks are made,
//! hand over N × Y times, and are reaped; each phase is timed by itself, so that what is
//! said of a hand-off has no creation in it and the other way round.
//!
//! Adding a kind is adding a file here and one line in [`all`].

// Also what the files here are made of.
use crate::mechanism::{Explanation, Fault, Links, Unavailable, Word};
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
mod task_context;
mod tasks;
mod thread_futex;
mod thread_yield;
mod timer_ticks;
mod tokio_current;

pub use doorbell_results::record::subject::{MadeOf, Measured};
use driver::Driver;
pub use family::Tasks;
use generations::Generations;
use task_context::TaskContext;

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

/// A kind of task.
#[derive(Debug)]
pub struct TaskKind {
    /// The name on the command line and in result files.
    pub name: &'static str,
    /// The text of `doorbell explain`.
    pub explanation: Explanation,
    pub measured: Measured,
    /// What its tasks are to the kernel.
    pub made_of: MadeOf,
    /// Whether its tasks, known to the kernel, do not sleep while others have their turns.
    stays_awake: bool,
    pub needs: Needs,
    /// Whether this machine has it.
    pub available: fn() -> Result<(), Unavailable>,
    /// Whether its tasks can have no more than a turn each.
    one_turn: bool,
    /// Whether it is part of a run that names no kind.
    pub usual: bool,
    /// Lets one generation of tasks live: makes them, lets them take all their turns, reaps them.
    /// What it does is timed to its end.
    generation: fn(&TaskContext, &mut Generations) -> Result<(), SideError>,
    /// Adds to the record what it has to say of all generations
    /// beside their times; called once, after the last.
    conclude: fn(&TaskContext, &mut Generations),
}

/// What a kind is that says nothing else of itself.
const PLAIN: TaskKind = TaskKind {
    name: "",
    explanation: Explanation { summary: "", how: "", kernel: "", limits: "", sources: &[] },
    measured: Measured::HandOffs,
    made_of: MadeOf::Code,
    stays_awake: false,
    needs: Needs { tasks: 0, descriptors: 0, mappings: 0, bytes: 0 },
    available: || Ok(()),
    one_turn: false,
    usual: true,
    generation: |_, _| Ok(()),
    conclude: |_, _| {},
};

impl TaskKind {
    /// Whether a task sleeps while others have their turns, so that
    /// each hand-off is at least one switch of the kernel's.
    fn sleeps(&self) -> bool {
        self.made_of != MadeOf::Code && self.measured == Measured::HandOffs && !self.stays_awake
    }
    /// Whether its tasks can have so many turns each.
    pub fn takes(&self, yields: u32) -> bool {
        yields == 1 || !self.one_turn
    }
    /// What it is, as it is stored with what was measured.
    pub fn subject(&self) -> Subject {
        Subject::Tasks { made_of: self.made_of, measured: self.measured, sleeps: self.sleeps() }
    }
}

/// Every kind, in the order `doorbell list` shows. The one list to extend.
// A crate that inlined it would compile every loop behind it once more.
#[inline(never)]
pub fn all() -> &'static [&'static TaskKind] {
    &[
        &call::KIND,
        &stackless::KIND,
        &stackful::KIND,
        &stackful_bare::KIND,
        &tokio_current::KIND,
        &async_executor::KIND,
        &thread_futex::KIND,
        &thread_yield::KIND,
        &process_futex::KIND,
        &process_pipe::KIND,
        &process_eventfd::KIND,
        &process_yield::KIND,
        &life_future::KIND,
        &life_stackful::KIND,
        &life_thread::KIND,
        &life_fork::KIND,
        &life_fork_exec::KIND,
        &life_vfork::KIND,
        &life_posix_spawn::KIND,
        &life_clone::KIND,
        &stackless_rotating::KIND,
        &process_pair::KIND,
        &process_pair::ROTATING,
        &timer_ticks::KIND,
    ]
}

/// The kind called `name`, or the nearest name if there is none.
pub fn find(name: &str) -> Result<&'static TaskKind, Unknown> {
    nearest::find("kind of task", all().iter().copied(), |kind| kind.name, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_kind_and_every_operation_is_found_by_a_name_that_no_other_and_no_mechanism_has() {
        let mut names: BTreeSet<&str> = crate::mechanism::all().iter().map(|entry| entry.name()).collect();
        let operations = crate::operation::all();
        for name in
            operations.iter().map(|operation| operation.name).chain(all().iter().map(|kind| kind.name))
        {
            assert!(names.insert(name), "{name} is used twice");
        }
        for operation in operations {
            assert_eq!(crate::operation::find(operation.name).unwrap().name, operation.name);
        }
        for kind in all() {
            assert_eq!(find(kind.name).unwrap().name, kind.name);
        }
    }
}
