// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stackful coroutines of a library, without the queue: what it costs when it is driven bare.

use corosensei::Coroutine;
use corosensei::stack::DefaultStack;

use super::generations::Known;
use super::stackful::NEEDS;
use super::{Explanation, MadeOf, PLAIN, TaskContext, TaskKind, stack_pool};
use doorbell_harness::side::SideError;

pub(super) const KIND: TaskKind = TaskKind {
    name: "stackful-bare",
    explanation: Explanation {
        summary: "stackful coroutines of a library (crate corosensei), resumed one after the \
            other, without the queue",
        how: "The coroutines are resumed in the order of a list, lap after lap; each does a turn \
            and suspends. No ready queue. Stacks come from the same pool as those of stackful.",
        kernel: "Nothing.",
        limits: "A hand-off is two switches of stacks, to the list and on. It is there for \
            stackful to be held against, which has a queue and one switch, and the tops of its \
            stacks apart: the library's lie in one set of the first cache.",
        sources: &["corosensei 0.3, src/arch/x86_64.rs"],
    },
    made_of: MadeOf::Code,
    needs: NEEDS,
    generation: |task_context, generations| {
        generations.starts(task_context);
        let mut tasks = make(task_context)?;
        generations.made(task_context, Known::None)?;
        for _ in 0..task_context.yields {
            for task in tasks.iter_mut().filter(|task| !task.done()) {
                task.resume(());
            }
        }
        generations.done(task_context, Known::None)?;
        stack_pool::give_back(tasks.into_iter().filter(Own::done).map(Own::into_stack));
        Ok(())
    },
    ..PLAIN
};

/// A coroutine that takes nothing, yields nothing and returns nothing.
type Own = Coroutine<(), (), (), DefaultStack>;

/// All tasks of a task context, on stacks from the pool: each a turn,
/// and giving way, as often as it is due.
fn make(task_context: &TaskContext) -> Result<Vec<Own>, SideError> {
    let mut tasks = Vec::with_capacity(task_context.tasks as usize);
    for own in 0..task_context.tasks {
        let task_context = *task_context;
        tasks.push(Own::with_stack(stack_pool::stack()?, move |yielder, ()| {
            while task_context.turn(own) {
                yielder.suspend(());
            }
        }));
    }
    Ok(tasks)
}
