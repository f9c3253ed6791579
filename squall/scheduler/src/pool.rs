// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pool: tasks in rings, one ring for each level of priority, a
//! [`Part`] for each address space.
//!
//! A ring holds the tasks of one level that can run, the running one among them. Who is next is who
//! stands after the running task, so giving up the processor is one step along the ring: a load
//! and a store, whatever the number of tasks. Waking a task puts it after all others of its level,
//! and blocking takes it out; both touch two neighbours.
//!
//! A part is written by the space that owns it and by the kernel. No other
//! process has it mapped, and the kernel follows no pointer in it, so whoever
//! scribbles over it harms itself. Of the words in it only [`Part::ready`]
//! and [`Part::mail`] are written by both, and only with atomic operations.

use core::ptr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use doorbell_core::wake::WakeWords;

/// Levels of priority; the greatest number goes first. Level 0 is the executor's own.
pub const LEVELS: usize = 8;

/// In [`Part::ready`]: something came from outside; the executor must run and look.
pub const ATTENTION: u64 = 1 << 62;

/// In [`Part::ready`]: give the processor to other spaces after every turn.
pub const GIVE_WAY: u64 = 1 << 63;

/// A task, as the scheduler sees it: a place in a ring. What it runs is known to its space alone.
#[repr(C)]
#[derive(Debug)]
pub struct Task {
    /// Who runs after it; null while it is in no ring.
    pub next: *mut Task,
    /// Who runs before it.
    pub previous: *mut Task,
    /// The ring of its level.
    pub queue: *mut Queue,
    /// Where its registers lie while it does not run.
    pub stack_pointer: usize,
}

/// The ring of one level.
#[repr(C)]
#[derive(Debug)]
pub struct Queue {
    /// The task that runs, or is next to; null if the ring is empty.
    pub current: *mut Task,
    /// The bits of [`Part::ready`] that must be looked at before a task of this level goes on.
    pub above: u64,
    /// This level's own bit.
    pub bit: u64,
}

/// One space's part of the pool.
#[repr(C)]
#[derive(Debug)]
pub struct Part {
    /// A bit for each level whose ring is not empty; [`ATTENTION`] and [`GIVE_WAY`].
    pub ready: AtomicU64,
    /// The task that has the processor.
    pub running: *mut Task,
    /// The executor, in the ring of level 0, which is never empty.
    pub executor: Task,
    /// The rings.
    pub queues: [Queue; LEVELS],
    /// What the kernel has to tell, one bit for each thing ([`crate::mailbox`]).
    pub mail: AtomicU64,
    /// Where the executor says that it waits for the kernel's mail.
    pub words: WakeWords,
}

impl Task {
    /// A task in no ring.
    pub const IDLE: Self =
        Self { next: ptr::null_mut(), previous: ptr::null_mut(), queue: ptr::null_mut(), stack_pointer: 0 };
}

impl Queue {
    /// Puts `task` after all others.
    ///
    /// # Safety
    /// `task` lives, is in no ring, and stays where it is until it is taken out.
    #[inline(always)]
    pub unsafe fn insert(&mut self, task: *mut Task) {
        let first = self.current;
        // SAFETY: the neighbours are in the ring, so they live; `task` does by the caller's promise.
        unsafe {
            if first.is_null() {
                ((*task).next, (*task).previous) = (task, task);
                self.current = task;
            } else {
                let last = (*first).previous;
                ((*task).next, (*task).previous) = (first, last);
                (*last).next = task;
                (*first).previous = task;
            }
        }
    }

    /// Takes `task` out; says whether the ring is empty now.
    ///
    /// # Safety
    /// `task` is in this ring.
    #[inline(always)]
    pub unsafe fn remove(&mut self, task: *mut Task) -> bool {
        // SAFETY: `task` and its neighbours are in the ring, so they live.
        unsafe {
            let (next, previous) = ((*task).next, (*task).previous);
            (*task).next = ptr::null_mut();
            if next == task {
                self.current = ptr::null_mut();
                return true;
            }
            (*previous).next = next;
            (*next).previous = previous;
            if self.current == task {
                self.current = next;
            }
            false
        }
    }
}

impl Part {
    /// Makes `part`, all zero, an empty part whose executor runs.
    ///
    /// # Safety
    /// `part` points to memory of a part's size that nobody else uses, and stays there.
    pub unsafe fn initialise(part: *mut Self) {
        // SAFETY: by the caller's promise; no reference is made to what is not yet written.
        unsafe {
            for level in 0..LEVELS {
                let bit = 1 << level;
                let levels_above = ((1 << LEVELS) - 1) & !(2 * bit - 1);
                let above = levels_above | ATTENTION | GIVE_WAY;
                (&raw mut (*part).queues[level]).write(Queue { current: ptr::null_mut(), above, bit });
            }
            let executor = &raw mut (*part).executor;
            executor.write(Task { queue: &raw mut (*part).queues[0], ..Task::IDLE });
            (*part).queues[0].insert(executor);
            (*part).running = executor;
            (*part).ready.fetch_or(1, Relaxed);
        }
    }

    /// Puts `task` after the others of `level`, which is at most
    /// `LEVELS - 1`. Nothing if it is in a ring already.
    ///
    /// # Safety
    /// `task` lives and stays where it is until it has left the ring.
    pub unsafe fn insert(&mut self, task: *mut Task, level: usize) {
        // SAFETY: by the caller's promise.
        unsafe {
            if !(*task).next.is_null() {
                return;
            }
            let queue = &mut self.queues[level % LEVELS];
            (*task).queue = queue;
            queue.insert(task);
            self.ready.fetch_or(queue.bit, Relaxed);
        }
    }

    /// Takes `task` out of its ring.
    ///
    /// # Safety
    /// `task` is in a ring of this part.
    pub unsafe fn remove(&mut self, task: *mut Task) {
        // SAFETY: by the caller's promise; a task's queue is one of this part's.
        unsafe {
            let queue = (*task).queue;
            if (*queue).remove(task) {
                self.ready.fetch_and(!(*queue).bit, Relaxed);
            }
        }
    }

    /// The task that runs next: the executor if there is mail, else
    /// whose turn it is at the highest level.
    #[inline(always)]
    pub fn choose(&mut self) -> *mut Task {
        // Acquire: pairs with the kernel's fetch_or after the mail it speaks of.
        let ready = self.ready.load(Acquire);
        if ready & ATTENTION != 0 {
            return &raw mut self.executor;
        }
        let mut level = LEVELS - 1;
        while level > 0 && ready & (1 << level) == 0 {
            level -= 1;
        }
        self.queues[level].current
    }
}
