// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stackless coroutines: Rust futures, whose wakers put them back into the ready queue.

use super::generations::Known;
use super::node::Node;
use super::{Explanation, MadeOf, Needs, PLAIN, TaskContext, TaskKind};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
/// Makes futures that are polled here a type of their own.
enum Own {}

pub(super) const KIND: TaskKind = TaskKind {
    name: "stackless",
    explanation: Explanation {
        summary: "stackless coroutines: Rust futures on the O(1) ready queue",
        how: "Takes the first task from the ready queue and polls its future, an async function \
            that waits for its turns. At each poll it does one, wakes itself through its waker, \
            whose table puts it at the end of the queue, and returns Pending. Wakers are made once \
            for each task and point to its place in the queue. All futures are of one type, as in \
            a pool of equal tasks: they lie side by side, and a poll is a direct call.",
        kernel: "Nothing.",
        limits: "The executor has one thread, no timers and no lock, knows its futures' type, \
            and its wakers count nobody; a general one does more, see tokio and async-executor.",
        sources: &["Rust library documentation, std::future and std::task"],
    },
    made_of: MadeOf::Code,
    needs: Needs { tasks: 0, descriptors: 0, mappings: 0, bytes: 512 },
    generation: |task_context, generations| {
        generations.starts(task_context);
        let mut tasks = make::<Own>(task_context);
        task_context.queue.fill();
        generations.made(task_context, Known::None)?;
        while let Some(own) = task_context.queue.pop() {
            // Ready: it had its last turn, and nobody puts it back.
            let _ = tasks.poll(own);
        }
        generations.done(task_context, Known::None)
    },
    ..PLAIN
};

/// The tasks of a task context as futures, side by side and each with its waker: one address to
/// compute, and no box to look into.
pub(super) struct Tasks<F>(Pin<Box<[Task<F>]>>);

struct Task<F> {
    future: F,
    waker: Waker,
}

/// All tasks of `task context`, to be polled by `By`.
pub(super) fn make<By>(task_context: &TaskContext) -> Tasks<impl Future<Output = ()> + use<By>> {
    let task =
        |node: &'static Node| Task { future: walk::<By>(*task_context, node.own), waker: node.waker() };
    Tasks(Box::into_pin(task_context.nodes.iter().map(task).collect()))
}

impl<F: Future<Output = ()>> Tasks<F> {
    /// Lets the task `own` go on until it gives way, or to its end.
    #[inline(always)]
    pub(super) fn poll(&mut self, own: u32) -> Poll<()> {
        // SAFETY: no task is moved out of the slice.
        // JUSTIFICATION: the library projects no pin through a slice.
        let task = unsafe { &mut self.0.as_mut().get_unchecked_mut()[own as usize] };
        // SAFETY: part of what is pinned, and handed on in no other way; a task is dropped where it is.
        let future = unsafe { Pin::new_unchecked(&mut task.future) };
        future.poll(&mut Context::from_waker(&task.waker))
    }
}

/// A task's life: its turns, waited for. A future for each kind that polls it: what one place alone
/// calls the compiler puts there, as it would in a program that has no other kinds.
#[expect(clippy::extra_unused_type_parameters, reason = "it makes a type of its own for each")]
pub(super) async fn walk<By>(task_context: TaskContext, own: u32) {
    Turns { task_context, own }.await;
}

/// The turns of a task: one at each poll, after which it wakes itself
/// and gives way, until it has had the last.
struct Turns {
    task_context: TaskContext,
    own: u32,
}

impl Future for Turns {
    type Output = ();
    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if !self.task_context.turn(self.own) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::super::task_context::tests::task_context;
    use super::*;

    #[test]
    fn a_task_goes_to_the_end_of_the_queue_by_its_waker_or_any_copy_of_it() {
        let task_context = task_context(3, 2);
        let mut tasks = make::<Own>(&task_context);
        task_context.queue.fill();
        let first = task_context.queue.pop().unwrap();
        assert_eq!((first, tasks.poll(first)), (0, Poll::Pending));
        let copy = task_context.nodes[0].waker().clone();
        let order = || std::iter::from_fn(|| task_context.queue.pop()).collect::<Vec<_>>();
        assert_eq!(order(), [1, 2, 0]);
        drop(tasks);
        copy.wake();
        assert_eq!(order(), [0], "a waker may outlive its task");
    }
}
