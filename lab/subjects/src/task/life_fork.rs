// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a forked process: forked, run to its end, waited for.

use super::generations::Generations;
use super::tasks::Children;
use super::{MadeOf, Measured, Needs, TaskContext, TaskKind};
use crate::mechanism::Explanation;
use doorbell_harness::fork::fork;
use doorbell_harness::side::SideError;

/// A process each, by fork.
#[derive(Debug)]
pub(super) struct LifeFork;

impl TaskKind for LifeFork {
    fn name(&self) -> &'static str {
        "life-fork"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "forking a process that ends at once, and waiting for it",
            how: "Forks a process for each task, all before the first is waited for. Each asks to \
                be killed if its parent dies (prctl), and leaves by _exit.",
            kernel: "Copies the descriptions of the address space and page tables of private \
                memory, marks the pages for copying at the first write, which both sides then meet \
                as faults.",
            limits: "The parent is small, some 10 MiB. A large one has more page tables to copy.",
            sources: &["fork(2)", "Linux kernel/fork.c, copy_process"],
        }
    }
    fn measured(&self) -> Measured {
        Measured::Lives
    }
    fn made_of(&self) -> MadeOf {
        MadeOf::Processes
    }
    fn needs(&self) -> Needs {
        Needs { tasks: 1, descriptors: 0, mappings: 0, bytes: 224 << 10 }
    }
    fn generation(&self, task_context: &TaskContext, generations: &mut Generations) -> Result<(), SideError> {
        let children = Children::made(task_context, generations, task_context.tasks, "a process", |own| {
            fork(|| task_context.live(own))
        })?;
        generations.run(task_context);
        children.leave()
    }
}
