// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that hand over by a futex of their process.

use rustix::thread::futex::Flags;

use super::generations::Generations;
use super::process_futex::Words;
use super::{MadeOf, Needs, TaskContext, TaskKind, tasks};
use crate::mechanism::Explanation;
use doorbell_harness::side::SideError;

/// A thread each, and a word each to sleep on.
#[derive(Debug)]
pub(super) struct ThreadFutex;

impl TaskKind for ThreadFutex {
    fn name(&self) -> &'static str {
        "thread-futex"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "threads that hand over by futex",
            how: "As process-futex, with threads of one process and the private key of the futex.",
            kernel: "A wake-up, a sleep and a switch within one address space: registers and stack \
                change, page tables stay.",
            limits: "Two system calls a hand-off. What a program adds by a mutex with a condition \
                variable is on top.",
            sources: &["futex(2), FUTEX_PRIVATE_FLAG", "pthreads(7)"],
        }
    }
    fn made_of(&self) -> MadeOf {
        MadeOf::Threads
    }
    fn needs(&self) -> Needs {
        // A stack and its guard page.
        Needs { tasks: 1, descriptors: 0, mappings: 2, bytes: 36 << 10 }
    }
    fn generation(&self, task_context: &TaskContext, generations: &mut Generations) -> Result<(), SideError> {
        tasks::threads(task_context, generations, Words { words: task_context.words, flags: Flags::PRIVATE })
    }
}
