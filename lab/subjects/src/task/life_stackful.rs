// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a stackful coroutine: on a stack from the pool, resumed once, its stack given back.

use super::stackful::{Coroutines, NEEDS, available};
use super::{Explanation, MadeOf, Measured, PLAIN, TaskKind};

pub(super) const KIND: TaskKind = TaskKind {
    name: "life-stackful",
    explanation: Explanation {
        summary: "making a stackful coroutine on a pooled stack, running it once, giving the stack back",
        how: "Takes a stack from the pool and lays a task out on it for each, switches to each \
            once, which ends it, and puts the stacks back.",
        kernel: "Nothing, once the pool is full.",
        limits: "The first generation, which is not recorded, maps the stacks.",
        sources: &["System V Application Binary Interface, AMD64 supplement, 3.2"],
    },
    measured: Measured::Lives,
    made_of: MadeOf::Code,
    needs: NEEDS,
    available,
    generation: |task_context, generations| {
        generations.starts(task_context);
        let coroutines = Coroutines::make(task_context)?;
        generations.run(task_context);
        // The queue is empty: each comes back when it has ended.
        (0..task_context.tasks).for_each(|own| coroutines.run(own));
        Ok(())
    },
    ..PLAIN
};
