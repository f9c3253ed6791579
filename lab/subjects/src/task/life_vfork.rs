// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a vfork: the maker stands still until the new process has ended.

use super::life_clone::Clones;
use super::tasks::Children;
use super::{Explanation, MadeOf, Measured, Needs, PLAIN, TaskKind};

pub(super) const KIND: TaskKind = TaskKind {
    name: "life-vfork",
    explanation: Explanation {
        summary: "a process by vfork that ends at once, and waiting for it",
        how: "Calls clone with CLONE_VM and CLONE_VFORK, which is what vfork is to the kernel, \
            but on a stack of its own: the maker goes on when the new process has ended. All \
            are made before the first is waited for.",
        kernel: "A task that borrows the memory of its maker, which sleeps meanwhile: no page \
            table is copied.",
        limits: "One runs at a time. In a program it is followed by exec; see life-posix-spawn.",
        sources: &["vfork(2)", "Linux kernel/fork.c, wait_for_vfork_done"],
    },
    measured: Measured::Lives,
    made_of: MadeOf::Processes,
    needs: Needs { tasks: 1, descriptors: 0, mappings: 0, bytes: 32 << 10 },
    generation: |task_context, generations| {
        // One at a time: the maker sleeps until the stack is free again.
        let clones = Clones::new(task_context, 1)?;
        // SAFETY: CLONE_VFORK lets the caller go on only when the new
        // process has ended (clone(2)), so its stack is free.
        let make = |own| unsafe { clones.start(own, libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD) };
        let children = Children::made(task_context, generations, task_context.tasks, "a process", make)?;
        generations.run(task_context);
        children.leave()
    },
    ..PLAIN
};
