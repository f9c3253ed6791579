// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a vfork: the maker stands still until the new process has ended.

use super::generations::Generations;
use super::life_clone::Clones;
use super::tasks::Children;
use super::{MadeOf, Measured, Needs, TaskContext, TaskKind};
use crate::mechanism::Explanation;
use doorbell_harness::side::SideError;

/// A process each, by vfork.
#[derive(Debug)]
pub(super) struct LifeVfork;

impl TaskKind for LifeVfork {
    fn name(&self) -> &'static str {
        "life-vfork"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "a process by vfork that ends at once, and waiting for it",
            how: "Calls clone with CLONE_VM and CLONE_VFORK, which is what vfork is to the kernel, \
                but on a stack of its own: the maker goes on when the new process has ended. All \
                are made before the first is waited for.",
            kernel: "A task that borrows the memory of its maker, which sleeps meanwhile: no page \
                table is copied.",
            limits: "One runs at a time. In a program it is followed by exec; see life-posix-spawn.",
            sources: &["vfork(2)", "Linux kernel/fork.c, wait_for_vfork_done"],
        }
    }
    fn measured(&self) -> Measured {
        Measured::Lives
    }
    fn made_of(&self) -> MadeOf {
        MadeOf::Processes
    }
    fn needs(&self) -> Needs {
        Needs { tasks: 1, descriptors: 0, mappings: 0, bytes: 32 << 10 }
    }
    fn generation(&self, task_context: &TaskContext, generations: &mut Generations) -> Result<(), SideError> {
        // One at a time: the maker sleeps until the stack is free again.
        let clones = Clones::new(task_context, 1)?;
        // SAFETY: CLONE_VFORK lets the caller go on only when the new
        // process has ended (clone(2)), so its stack is free.
        let make = |own| unsafe { clones.start(own, libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD) };
        let children = Children::made(task_context, generations, task_context.tasks, "a process", make)?;
        generations.run(task_context);
        children.leave()
    }
}
