// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that give way by `sched_yield` and let the kernel say who is next.

use super::{Explanation, MadeOf, Needs, PLAIN, TaskContext, TaskKind, tasks, thread_yield};

pub(super) const KIND: TaskKind = TaskKind {
    name: "process-yield",
    explanation: Explanation {
        summary: "processes that give way by sched_yield",
        how: "As thread-yield, with a process each, forked from one: all are runnable, each \
            does a turn and calls sched_yield, and who is next is the kernel's to say.",
        kernel: "Puts the caller behind, picks the next, and changes the address space: no \
            sleep, no wake-up.",
        limits: "As for thread-yield: the kernel may pick the caller again, and turns in a row \
            by one task are counted.",
        sources: &["sched_yield(2)", "Linux kernel/sched/fair.c, yield_task_fair"],
    },
    made_of: MadeOf::Processes,
    needs: Needs { tasks: 1, descriptors: 0, mappings: 0, bytes: 224 << 10 },
    stays_awake: true,
    generation: |task_context, generations| {
        thread_yield::hold(task_context);
        let life = |task_context: &TaskContext, own| {
            task_context.await_gate();
            thread_yield::walk(task_context, own);
            Ok(())
        };
        tasks::forked(task_context, generations, task_context.tasks, life, || {
            task_context.open_gate();
            thread_yield::release(task_context);
            Ok(())
        })
    },
    conclude: thread_yield::conclude,
    ..PLAIN
};
