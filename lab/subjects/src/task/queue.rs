// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ready queue that every kind of task shares: first in, first
//! out, one step to put in and one to take out.
//!
//! Tasks are numbers, and the link to the next one lies in a word that belongs to the task: nothing
//! is allocated, and the same queue works between processes that have it at different addresses.
//! There is no lock: only the task whose turn it is touches the queue, and whatever passes control
//! on (a futex, a pipe, a return) orders what it wrote before what the next one reads.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::mechanism::OpenError;
use doorbell_harness::arena::{Arena, Zeroed};

const NONE: u32 = u32::MAX;

/// The first and the last of the queue.
#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Ends {
    head: AtomicU32,
    tail: AtomicU32,
}

// SAFETY: atomics are plain integers in memory; zero is one of them.
unsafe impl Zeroed for Ends {}

/// A queue of tasks in shared memory.
#[derive(Clone, Copy)]
pub(super) struct Queue {
    ends: &'static Ends,
    next: &'static [AtomicU32],
}

impl Queue {
    /// An empty queue for tasks numbered below `tasks`.
    pub(super) fn place(arena: &'static Arena, tasks: u32) -> Result<Self, OpenError> {
        let queue = Self { ends: arena.place()?, next: arena.slice(tasks as usize)? };
        queue.clear();
        Ok(queue)
    }

    /// The same queue for the tasks numbered below `tasks` alone.
    pub(super) fn of_the_first(self, tasks: u32) -> Self {
        Self { next: &self.next[..tasks as usize], ..self }
    }

    /// Forgets every task in it.
    pub(super) fn clear(&self) {
        self.ends.head.store(NONE, Relaxed);
        self.ends.tail.store(NONE, Relaxed);
    }

    /// Puts all tasks in, in the order of their numbers.
    pub(super) fn fill(&self) {
        self.clear();
        (0..self.next.len() as u32).for_each(|task| self.push(task));
    }

    /// Lets `look` see the words of all tasks.
    pub(super) fn map(&self, look: impl Fn(&[AtomicU32])) {
        look(self.next);
        look(std::slice::from_ref(&self.ends.head));
    }

    /// Puts `task` at the end. It must not be in the queue.
    #[inline(always)]
    pub(super) fn push(&self, task: u32) {
        self.next[task as usize].store(NONE, Relaxed);
        match self.ends.tail.load(Relaxed) {
            NONE => self.ends.head.store(task, Relaxed),
            tail => self.next[tail as usize].store(task, Relaxed),
        }
        self.ends.tail.store(task, Relaxed);
    }

    /// The task at the front, which stays there.
    #[inline(always)]
    pub(super) fn peek(&self) -> Option<u32> {
        Some(self.ends.head.load(Relaxed)).filter(|task| *task != NONE)
    }

    /// Takes the task at the front out.
    #[inline(always)]
    pub(super) fn pop(&self) -> Option<u32> {
        let task = self.peek()?;
        let next = self.next[task as usize].load(Relaxed);
        self.ends.head.store(next, Relaxed);
        if next == NONE {
            self.ends.tail.store(NONE, Relaxed);
        }
        Some(task)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn tasks_come_out_in_the_order_in_which_they_were_put_in(steps in prop::collection::vec(any::<bool>(), 0..200)) {
            let queue = Queue::place(Arena::map(1 << 16).unwrap(), 7).unwrap();
            queue.fill();
            let mut model: VecDeque<u32> = (0..7).collect();
            let mut out = VecDeque::new();
            for put in steps {
                if put {
                    if let Some(task) = out.pop_front() {
                        queue.push(task);
                        model.push_back(task);
                    }
                } else {
                    let task = queue.pop();
                    prop_assert_eq!(task, model.pop_front());
                    out.extend(task);
                }
                prop_assert_eq!(queue.peek(), model.front().copied());
            }
        }
    }
}
