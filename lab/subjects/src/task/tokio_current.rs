// SPDX-License-Identifier: MIT OR Apache-2.0
//! Futures on tokio's scheduler of one thread.

use super::generations::Known;
use super::stackless::walk;
use super::{Explanation, Fault, MadeOf, Needs, PLAIN, TaskKind};

/// Makes futures that are polled here a type of their own.
enum Own {}

pub(super) const KIND: TaskKind = TaskKind {
    name: "tokio",
    explanation: Explanation {
        summary: "futures on tokio's current-thread scheduler",
        how: "The futures of stackless, spawned on a runtime of one thread without timers and \
            without input and output. A task that wakes itself goes to the end of tokio's own \
            queue.",
        kernel: "Nothing in a hand-off; every 61 polls tokio looks after its driver, which \
            here only parks.",
        limits: "The queue is tokio's, not the one that the other kinds share. \
            tokio::task::yield_now does more than a task that wakes itself: it lets the driver \
            run first.",
        sources: &["tokio 1, src/runtime/scheduler/current_thread"],
    },
    made_of: MadeOf::Code,
    needs: Needs { tasks: 0, descriptors: 0, mappings: 0, bytes: 768 },
    generation: |task_context, generations| {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(Fault::of("tokio::runtime::Builder::build"))?;
        runtime.block_on(async {
            generations.starts(task_context);
            let tasks: Vec<_> =
                (0..task_context.tasks).map(|own| tokio::spawn(walk::<Own>(*task_context, own))).collect();
            generations.made(task_context, Known::None)?;
            for task in tasks {
                task.await.map_err(Fault::of("tokio::task::JoinHandle"))?;
            }
            generations.done(task_context, Known::None)
        })
    },
    ..PLAIN
};
