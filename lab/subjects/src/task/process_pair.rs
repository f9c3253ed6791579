// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two processes that share all tasks, as in the process run of
//! tornado-os: with its queue, and with one that is O(1).

use rustix::thread::futex::Flags;

use super::generations::Generations;
use super::process_futex::Words;
use super::queue::Queue;
use super::rotating::Rotating;
use super::tasks::{self, Pass};
use super::{Explanation, Fault, MadeOf, Needs, PLAIN, TaskContext, TaskKind};
use doorbell_harness::side::SideError;

pub(super) const KIND: TaskKind = TaskKind {
    name: "process-pair",
    explanation: Explanation {
        summary: "two processes that share all tasks, on the O(1) queue",
        how: "Tasks belong to two processes in turn, as the source spawns them. A process \
            looks at the head of the queue: a task of its own it takes out and counts, without \
            polling anything, as the source does; at one of the other it wakes that process \
            (futex) and sleeps.",
        kernel: "A change of address space for every task, between the same two.",
        limits: "One turn a task. There are two processes, not as many as tasks: that is the \
            source's experiment, and not what process-futex measures.",
        sources: &["HUST-OS/tornado-os, user/src/bin/analysis1.rs"],
    },
    generation: |task_context, generations| pair(task_context, generations, task_context.queue),
    ..PAIR
};

pub(super) const ROTATING: TaskKind = TaskKind {
    name: "process-pair-rotating",
    explanation: Explanation {
        summary: "two processes that share all tasks, on tornado-os's queue",
        how: "As process-pair, with the ring whose delete takes every element out and puts all \
            but one back.",
        kernel: "A change of address space for every task, between the same two.",
        limits: "As process-pair. The wrap fault of the original's ring, by which its \
            processes changed places more rarely the more tasks there were, is not copied.",
        sources: &["HUST-OS/tornado-os, shared-scheduler, ring_fifo.rs"],
    },
    generation: |task_context, generations| {
        let ring = Rotating::over(task_context.slots, &task_context.ends[0].0, &task_context.ends[1].0);
        ring.fill();
        pair(task_context, generations, ring)
    },
    ..PAIR
};

const PAIR: TaskKind = TaskKind {
    made_of: MadeOf::Processes,
    // Two processes and their words, whatever the number of tasks.
    needs: Needs { tasks: 0, descriptors: 0, mappings: 0, bytes: 256 },
    one_turn: true,
    usual: false,
    ..PLAIN
};

/// A queue from which both processes take.
trait Shared: Copy {
    fn peek(self) -> Option<u32>;
    fn delete(self, task: u32);
}

impl Shared for Queue {
    #[inline(always)]
    fn peek(self) -> Option<u32> {
        Queue::peek(&self)
    }
    #[inline(always)]
    fn delete(self, _: u32) {
        self.pop();
    }
}

impl Shared for Rotating {
    #[inline(always)]
    fn peek(self) -> Option<u32> {
        Rotating::peek(&self)
    }
    #[inline(always)]
    fn delete(self, task: u32) {
        Rotating::delete(&self, task);
    }
}

fn pair(
    task_context: &TaskContext,
    generations: &mut Generations,
    queue: impl Shared,
) -> Result<(), SideError> {
    let pass = Words { words: task_context.words, flags: Flags::empty() };
    let life = |task_context: &TaskContext, own| walk(task_context, &pass, queue, own);
    tasks::forked(task_context, generations, 2, life, || pass.give(0).map_err(Into::into))
}

/// A process takes its own tasks out while they are at the head, and
/// gives control to the other at one of the other's.
fn walk(task_context: &TaskContext, pass: &impl Pass, queue: impl Shared, own: u32) -> Result<(), Fault> {
    pass.take(own)?;
    loop {
        match queue.peek() {
            Some(task) if task % 2 == own => {
                task_context.turn(task);
                queue.delete(task);
            }
            Some(_) => {
                pass.give(1 - own)?;
                pass.take(own)?;
            }
            None => break,
        }
    }
    // The other sleeps until it is given control once more, and then finds the queue empty too.
    if task_context.leave(2) {
        task_context.finish();
    } else {
        pass.give(1 - own)?;
    }
    Ok(())
}
