// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a future: boxed, polled once, dropped.

use std::pin::Pin;
use std::task::{Context, Waker};

use super::stackless::walk;
use super::{Explanation, MadeOf, Measured, Needs, PLAIN, TaskKind};

/// Makes futures that are polled here a type of their own.
enum Own {}

pub(super) const KIND: TaskKind = TaskKind {
    name: "life-future",
    explanation: Explanation {
        summary: "making, polling once and dropping a future",
        how: "Boxes a future and makes a waker for each task, puts all into the ready queue, \
            takes one after the other out, polls it, which ends it, and drops all.",
        kernel: "Nothing, once the allocator has the memory.",
        limits: "One allocation a task, the future: wakers point to the task's place in the \
            queue and count nobody.",
        sources: &["Rust library documentation, std::future"],
    },
    measured: Measured::Lives,
    made_of: MadeOf::Code,
    needs: Needs { tasks: 0, descriptors: 0, mappings: 0, bytes: 512 },
    generation: |task_context, generations| {
        generations.starts(task_context);
        let one = |own: u32| -> (Pin<Box<_>>, Waker) {
            (Box::pin(walk::<Own>(*task_context, own)), task_context.nodes[own as usize].waker())
        };
        let mut tasks: Vec<_> = (0..task_context.tasks).map(one).collect();
        task_context.queue.fill();
        generations.run(task_context);
        while let Some(own) = task_context.queue.pop() {
            let (future, waker) = &mut tasks[own as usize];
            let _ = future.as_mut().poll(&mut Context::from_waker(waker));
        }
        Ok(())
    },
    ..PLAIN
};
