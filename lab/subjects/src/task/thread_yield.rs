// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that give way by `sched_yield` and let the kernel say who is next.

use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use super::generations::Generations;
use super::{Explanation, MadeOf, Needs, PLAIN, TaskContext, TaskKind, tasks};

/// Figure: turns of which the one before was the same task's.
const IN_A_ROW: &str = "turns in a row by one task";

pub(super) const KIND: TaskKind = TaskKind {
    name: "thread-yield",
    explanation: Explanation {
        summary: "threads that give way by sched_yield",
        how: "All threads are runnable. Each does a turn and calls sched_yield, as often as it \
            has turns. The ready queue is turned for the same work, but who is next is the \
            kernel's to say: its run queue is the queue here.",
        kernel: "Puts the caller behind and picks the next: no sleep, no wake-up.",
        limits: "A hand-off is a call of sched_yield. The kernel may pick the caller again: \
            turns in a row by one task are counted, and so are the switches. A thread may be \
            preempted in the middle of its turn, so a flag keeps the others out; who finds it \
            set gives way again.",
        sources: &["sched_yield(2)", "Linux kernel/sched/fair.c, yield_task_fair"],
    },
    made_of: MadeOf::Threads,
    needs: Needs { tasks: 1, descriptors: 0, mappings: 2, bytes: 36 << 10 },
    stays_awake: true,
    generation: |task_context, generations| {
        hold(task_context);
        tasks::all_at_once(task_context, generations, walk, || release(task_context))
    },
    conclude,
    ..PLAIN
};

/// Whether a task is in its turn, and which was last.
fn words(task_context: &TaskContext) -> [&'static AtomicU32; 2] {
    [&task_context.ends[0].0, &task_context.ends[1].0]
}

/// Nobody has a turn until all are awake: waking them is no part of a hand-off.
pub(super) fn hold(task_context: &TaskContext) {
    let [held, last] = words(task_context);
    last.store(u32::MAX, Relaxed);
    held.store(1, Relaxed);
}

/// Sets them going.
pub(super) fn release(task_context: &TaskContext) {
    task_context.begin();
    // Pairs with the Acquire swap in `walk`.
    words(task_context)[0].store(0, Release);
}

/// Says how often the kernel picked the same task again.
pub(super) fn conclude(task_context: &TaskContext, generations: &mut Generations) {
    let formula = format!(
        "turns that followed one of the same task, in the last generation of {}",
        task_context.total()
    );
    generations.figure(IN_A_ROW, task_context.repeats() as f64, "turns", formula);
}

/// The turns of the task `own`.
pub(super) fn walk(task_context: &TaskContext, own: u32) {
    let [held, last] = words(task_context);
    loop {
        // Pairs with the Release store below, by whoever had its turn before.
        if held.swap(1, Acquire) == 0 {
            if last.swap(own, Relaxed) == own {
                task_context.repeat();
            }
            // The same work as for the kinds that ask the queue who is next.
            if let Some(other) = task_context.queue.pop() {
                task_context.queue.push(other);
            }
            let more = task_context.turn(own);
            held.store(0, Release);
            if !more {
                if task_context.leave(task_context.tasks) {
                    task_context.finish();
                }
                return;
            }
        }
        rustix::thread::sched_yield();
    }
}
