// SPDX-License-Identifier: MIT OR Apache-2.0
//! Futures on the executor of smol.

use async_executor::LocalExecutor;

use super::generations::{Generations, Known};
use super::stackless::walk;
use super::{MadeOf, Needs, TaskContext, TaskKind};
use crate::mechanism::Explanation;
use doorbell_harness::side::SideError;

/// The crate async-executor, on one thread.
#[derive(Debug)]
pub(super) struct AsyncExecutor;

impl TaskKind for AsyncExecutor {
    fn name(&self) -> &'static str {
        "async-executor"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "futures on async-executor, the executor of smol, on one thread",
            how: "The futures of stackless, spawned on a LocalExecutor. A task that wakes itself \
                goes to the end of the executor's own queue.",
            kernel: "Nothing in a hand-off.",
            limits: "The queue is the executor's, a concurrent one even where there is one thread.",
            sources: &["async-executor 1, src/lib.rs"],
        }
    }
    fn made_of(&self) -> MadeOf {
        MadeOf::Code
    }
    fn needs(&self) -> Needs {
        Needs { tasks: 0, descriptors: 0, mappings: 0, bytes: 768 }
    }
    fn generation(&self, task_context: &TaskContext, generations: &mut Generations) -> Result<(), SideError> {
        let executor = LocalExecutor::new();
        futures_lite::future::block_on(executor.run(async {
            generations.starts(task_context);
            let tasks: Vec<_> =
                (0..task_context.tasks).map(|own| executor.spawn(walk::<Self>(*task_context, own))).collect();
            generations.made(task_context, Known::None)?;
            for task in tasks {
                task.await;
            }
            generations.done(task_context, Known::None)
        }))
    }
}
