// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stackless coroutines on the queue of tornado-os, whose delete is O(n).

use super::generations::{Generations, Known};
use super::rotating::Rotating;
use super::stackless::make;
use super::{Explanation, MadeOf, Needs, PLAIN, TaskContext, TaskKind};
use doorbell_harness::side::SideError;
use doorbell_results::figure::task::MOVES_PER_TASK;
use std::cell::Cell;
thread_local! {
    /// Elements that the deletes of the last generation took out.
    static MOVES: Cell<u64> = const { Cell::new(0) };
}

pub(super) const KIND: TaskKind = TaskKind {
    name: "stackless-rotating",
    explanation: Explanation {
        summary: "stackless coroutines on tornado-os's queue, whose delete rotates the whole ring",
        how: "Looks at the head of the ring, polls its future, which ends, and deletes the \
            task by taking every element out and putting all but this one back.",
        kernel: "Nothing.",
        limits: "One turn a task, as in the source: every hand-off is a delete. Its difference \
            to stackless is the queue's share of a figure taken with it.",
        sources: &["HUST-OS/tornado-os, shared-scheduler, ring_fifo.rs"],
    },
    made_of: MadeOf::Code,
    needs: Needs { tasks: 0, descriptors: 0, mappings: 0, bytes: 512 },
    one_turn: true,
    usual: false,
    generation: |task_context, generations| {
        MOVES.set(live(task_context, generations)?);
        Ok(())
    },
    conclude: |task_context, generations| {
        let moves = MOVES.get();
        let each = moves as f64 / f64::from(task_context.tasks);
        let formula =
            format!("{moves} elements taken out by deletes of a generation / {} tasks", task_context.tasks);
        generations.figure(MOVES_PER_TASK, each, "moves", formula);
    },
    ..PLAIN
};

/// Makes futures that are polled here a type of their own.
enum Own {}

/// A generation, and how many elements its deletes moved.
pub(super) fn live(task_context: &TaskContext, generations: &mut Generations) -> Result<u64, SideError> {
    let ring = Rotating::over(task_context.slots, &task_context.ends[0].0, &task_context.ends[1].0);
    generations.starts(task_context);
    let mut tasks = make::<Own>(task_context);
    ring.fill();
    generations.made(task_context, Known::None)?;
    let mut moves = 0;
    while let Some(own) = ring.peek() {
        // Its only turn ends it; the original marks what is not at
        // its end as asleep, which no task here ever is.
        let _ = tasks.poll(own);
        moves += ring.delete(own);
    }
    generations.done(task_context, Known::None)?;
    Ok(moves)
}
