// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a future: boxed, polled once, dropped.

use std::task::Context;

use super::course::Course;
use super::stackless::make;
use super::{Kind, MadeOf, Measured, Needs, Scene};
use crate::mechanism::Explanation;
use crate::trial::side::SideError;

/// A boxed future each.
#[derive(Debug)]
pub(super) struct LifeFuture;

impl Kind for LifeFuture {
    fn name(&self) -> &'static str {
        "life-future"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "making, polling once and dropping a future",
            how: "Boxes a future and a waker for each task, puts all into the ready queue, takes one after the other out, polls it, which \
                  ends it, and drops all.",
            kernel: "Nothing, once the allocator has the memory.",
            limits: "Two allocations a task: the future, and the count of references of its waker.",
            sources: &["Rust library documentation, std::future"],
        }
    }
    fn measured(&self) -> Measured {
        Measured::Lives
    }
    fn made_of(&self) -> MadeOf {
        MadeOf::Code
    }
    fn needs(&self) -> Needs {
        Needs { tasks: 0, descriptors: 0, mappings: 0, bytes: 512 }
    }
    fn generation(&self, scene: &Scene, course: &mut Course) -> Result<(), SideError> {
        course.starts(scene);
        let mut tasks = make(scene);
        scene.queue.fill();
        course.run(scene);
        while let Some(own) = scene.queue.pop() {
            let task = &mut tasks[own as usize];
            let _ = task.future.as_mut().poll(&mut Context::from_waker(&task.waker));
        }
        Ok(())
    }
}
