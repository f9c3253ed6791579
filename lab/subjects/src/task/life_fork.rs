// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a forked process: forked, run to its end, waited for.

use super::tasks::Children;
use super::{Explanation, MadeOf, Measured, Needs, PLAIN, TaskKind};
use doorbell_harness::fork::fork;

pub(super) const KIND: TaskKind = TaskKind {
    name: "life-fork",
    explanation: Explanation {
        summary: "forking a process that ends at once, and waiting for it",
        how: "Forks a process for each task, all before the first is waited for. Each asks to \
            be killed if its parent dies (prctl), and leaves by _exit.",
        kernel: "Copies the descriptions of the address space and page tables of private memory, \
            marks the pages for copying at the first write, which both sides then meet as faults.",
        limits: "The parent is small, some 10 MiB. A large one has more page tables to copy.",
        sources: &["fork(2)", "Linux kernel/fork.c, copy_process"],
    },
    measured: Measured::Lives,
    made_of: MadeOf::Processes,
    needs: Needs { tasks: 1, descriptors: 0, mappings: 0, bytes: 224 << 10 },
    generation: |task_context, generations| {
        let children = Children::made(task_context, generations, task_context.tasks, "a process", |own| {
            fork(|| task_context.live(own))
        })?;
        generations.run(task_context);
        children.leave()
    },
    ..PLAIN
};
