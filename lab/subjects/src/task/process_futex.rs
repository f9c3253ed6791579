// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that hand over by a futex in shared memory.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

use super::tasks::{self, Pass};
use super::{Explanation, Fault, MadeOf, Needs, PLAIN, TaskKind, Word};

pub(super) const KIND: TaskKind = TaskKind {
    name: "process-futex",
    explanation: Explanation {
        summary: "processes that hand over by futex in shared memory",
        how: "A process each, forked from one. Whoever has its turn takes the next from the ready \
            queue, sets that one's word, wakes it (FUTEX_WAKE) and sleeps on its own (FUTEX_WAIT).",
        kernel: "A wake-up, a sleep and a switch to another address space: the page tables \
            change, and with them what the TLB may still use where the CPU has no \
            address-space numbers left.",
        limits: "Two system calls a hand-off. All share one core, so a hand-off has no \
            inter-processor interrupt in it; --placement two-cores shows one that has.",
        sources: &["futex(2)", "Linux arch/x86/mm/tlb.c, switch_mm_irqs_off"],
    },
    made_of: MadeOf::Processes,
    needs: Needs { tasks: 1, descriptors: 0, mappings: 0, bytes: 224 << 10 },
    generation: |task_context, generations| {
        tasks::processes(
            task_context,
            generations,
            &Words { words: task_context.words, flags: Flags::empty() },
        )
    },
    ..PLAIN
};

/// A word for each task.
pub(super) struct Words {
    pub(super) words: &'static [Word],
    pub(super) flags: Flags,
}

impl Pass for Words {
    #[inline]
    fn give(&self, to: u32) -> Result<(), Fault> {
        let word = &self.words[to as usize];
        // Pairs with the Acquire load in `take`.
        word.store(1, Release);
        futex::wake(&word.0, self.flags, 1).map_err(|error| Fault::new("futex(FUTEX_WAKE)", error))?;
        Ok(())
    }

    #[inline]
    fn take(&self, own: u32) -> Result<(), Fault> {
        let word = &self.words[own as usize];
        while word.load(Acquire) == 0 {
            match futex::wait(&word.0, self.flags, 0, None) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(Fault::new("futex(FUTEX_WAIT)", error)),
            }
        }
        // Nobody gives control to a task that has it: the next store
        // of 1 follows this task's own giving on.
        word.store(0, Relaxed);
        Ok(())
    }
}
