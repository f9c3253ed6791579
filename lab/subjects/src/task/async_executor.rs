// SPDX-License-Identifier: MIT OR Apache-2.0
//! Futures on the executor of smol.

use async_executor::LocalExecutor;

use super::generations::Known;
use super::stackless::walk;
use super::{Explanation, MadeOf, Needs, PLAIN, TaskKind};

/// Makes futures that are polled here a type of their own.
enum Own {}

pub(super) const KIND: TaskKind = TaskKind {
    name: "async-executor",
    explanation: Explanation {
        summary: "futures on async-executor, the executor of smol, on one thread",
        how: "The futures of stackless, spawned on a LocalExecutor. A task that wakes itself \
            goes to the end of the executor's own queue.",
        kernel: "Nothing in a hand-off.",
        limits: "The queue is the executor's, a concurrent one even where there is one thread.",
        sources: &["async-executor 1, src/lib.rs"],
    },
    made_of: MadeOf::Code,
    needs: Needs { tasks: 0, descriptors: 0, mappings: 0, bytes: 768 },
    generation: |task_context, generations| {
        let executor = LocalExecutor::new();
        futures_lite::future::block_on(executor.run(async {
            generations.starts(task_context);
            let tasks: Vec<_> =
                (0..task_context.tasks).map(|own| executor.spawn(walk::<Own>(*task_context, own))).collect();
            generations.made(task_context, Known::None)?;
            for task in tasks {
                task.await;
            }
            generations.done(task_context, Known::None)
        }))
    },
    ..PLAIN
};
