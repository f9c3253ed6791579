// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control: a task is a function, and handing over is calling the next one through its pointer.

use std::hint::black_box;

use super::generations::Known;
use super::{Explanation, MadeOf, Needs, PLAIN, TaskContext, TaskKind};

pub(super) const KIND: TaskKind = TaskKind {
    name: "call",
    explanation: Explanation {
        summary: "control: an indirect function call through the same queue",
        how: "Takes the first task from the ready queue, calls its function through a pointer, \
            and puts the task back if it has turns left. The function does a turn: it writes \
            the working set, counts, and returns.",
        kernel: "Nothing.",
        limits: "It is what every other kind pays too: queue, count, stamps. What a kind costs \
            above it is the price of its way of handing over, less what the compiler saves \
            where it may inline the turn, as in stackless.",
        sources: &["Agner Fog, Optimizing subroutines in assembly language, indirect calls"],
    },
    made_of: MadeOf::Code,
    needs: Needs { tasks: 0, descriptors: 0, mappings: 0, bytes: 256 },
    generation: |task_context, generations| {
        generations.starts(task_context);
        let calls: Vec<fn(&TaskContext, u32) -> bool> =
            vec![black_box(turn as fn(&TaskContext, u32) -> bool); task_context.tasks as usize];
        task_context.queue.fill();
        generations.made(task_context, Known::None)?;
        while let Some(task) = task_context.queue.pop() {
            if calls[task as usize](task_context, task) {
                task_context.queue.push(task);
            }
        }
        generations.done(task_context, Known::None)
    },
    ..PLAIN
};

#[inline(never)]
fn turn(task_context: &TaskContext, task: u32) -> bool {
    task_context.turn(task)
}
