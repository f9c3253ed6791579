// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a thread: created, run to its end, joined.

use super::tasks::no_more;
use super::{Explanation, Fault, MadeOf, Measured, Needs, PLAIN, TaskKind};

pub(super) const KIND: TaskKind = TaskKind {
    name: "life-thread",
    explanation: Explanation {
        summary: "creating a thread that ends at once, and joining it",
        how: "Creates a thread of the standard library for each task, all before the first is joined.",
        kernel: "clone with all that can be shared, a stack from the C library or a new \
            mapping, the end of a task, a futex for the join.",
        limits: "The C library keeps stacks of ended threads, some 40 MB of them: beyond that \
            every stack is mapped anew.",
        sources: &["pthread_create(3)", "Rust library documentation, std::thread"],
    },
    measured: Measured::Lives,
    made_of: MadeOf::Threads,
    needs: Needs { tasks: 1, descriptors: 0, mappings: 2, bytes: 36 << 10 },
    generation: |task_context, generations| {
        generations.starts(task_context);
        let mut threads = Vec::with_capacity(task_context.tasks as usize);
        for own in 0..task_context.tasks {
            let task_context = *task_context;
            let thread = std::thread::Builder::new().spawn(move || task_context.live(own));
            threads.push(thread.map_err(|error| no_more("a thread", own, &task_context, &error))?);
        }
        generations.run(task_context);
        for thread in threads {
            thread.join().map_err(|_| Fault::new("pthread_join", "a thread panicked"))?;
        }
        Ok(())
    },
    ..PLAIN
};
