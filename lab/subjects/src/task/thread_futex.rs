// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that hand over by a futex of their process.

use rustix::thread::futex::Flags;

use super::process_futex::Words;
use super::{Explanation, MadeOf, Needs, PLAIN, TaskKind, tasks};

pub(super) const KIND: TaskKind = TaskKind {
    name: "thread-futex",
    explanation: Explanation {
        summary: "threads that hand over by futex",
        how: "As process-futex, with threads of one process and the private key of the futex.",
        kernel: "A wake-up, a sleep and a switch within one address space: registers and stack \
            change, page tables stay.",
        limits: "Two system calls a hand-off. What a program adds by a mutex with a condition \
            variable is on top.",
        sources: &["futex(2), FUTEX_PRIVATE_FLAG", "pthreads(7)"],
    },
    made_of: MadeOf::Threads,
    // A stack and its guard page.
    needs: Needs { tasks: 1, descriptors: 0, mappings: 2, bytes: 36 << 10 },
    generation: |task_context, generations| {
        tasks::threads(task_context, generations, Words { words: task_context.words, flags: Flags::PRIVATE })
    },
    ..PLAIN
};
