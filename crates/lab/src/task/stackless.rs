// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stackless coroutines: Rust futures, whose wakers put them back into the ready queue.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::course::{Course, Known};
use super::queue::Queue;
use super::{Kind, MadeOf, Needs, Scene};
use crate::mechanism::Explanation;
use crate::trial::side::SideError;

/// Futures on the shared queue.
#[derive(Debug)]
pub(super) struct Stackless;

impl Kind for Stackless {
    fn name(&self) -> &'static str {
        "stackless"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "stackless coroutines: Rust futures on the O(1) ready queue",
            how: "Takes the first task from the ready queue and polls its boxed future. The future does a turn, wakes itself \
                  through its waker, which puts it at the end of the queue, and returns Pending. Wakers are made once for \
                  each task. All futures are of one type, as in a pool of equal tasks, so that a poll is a direct call.",
            kernel: "Nothing.",
            limits: "The executor has one thread, no timers and no lock, and knows its futures' type; a general one does more, \
                     see tokio and async-executor.",
            sources: &["Rust library documentation, std::future and std::task"],
        }
    }
    fn made_of(&self) -> MadeOf {
        MadeOf::Code
    }
    fn needs(&self) -> Needs {
        Needs { tasks: 0, descriptors: 0, mappings: 0, bytes: 512 }
    }
    fn generation(&self, scene: &Scene, course: &mut Course) -> Result<(), SideError> {
        course.starts(scene);
        let tasks = make(scene);
        scene.queue.fill();
        course.made(scene, Known::None)?;
        let mut tasks = tasks;
        while let Some(own) = scene.queue.pop() {
            let task = &mut tasks[own as usize];
            // Ready: it had its last turn, and nobody puts it back.
            let _ = task.future.as_mut().poll(&mut Context::from_waker(&task.waker));
        }
        course.done(scene, Known::None)
    }
}

/// A future and its waker.
pub(super) struct Task<F> {
    pub(super) future: Pin<Box<F>>,
    pub(super) waker: Waker,
}

/// All tasks of a scene as futures.
pub(super) fn make(scene: &Scene) -> Vec<Task<impl Future<Output = ()> + use<>>> {
    let task = |own| Task {
        future: Box::pin(walk(*scene, own)),
        waker: Waker::from(Arc::new(Own { queue: scene.queue, own })),
    };
    (0..scene.tasks).map(task).collect()
}

/// A task's life: a turn, and giving way, as often as it is due.
pub(super) async fn walk(scene: Scene, own: u32) {
    while scene.turn(own) {
        GiveWay { gave: false }.await;
    }
}

/// Wakes the task at once and lets others go first.
struct GiveWay {
    gave: bool,
}

impl Future for GiveWay {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.gave {
            return Poll::Ready(());
        }
        self.gave = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// What a waker needs to put its task back.
struct Own {
    queue: Queue,
    own: u32,
}

impl Wake for Own {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.queue.push(self.own);
    }
}
