// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control: a task is a function, and handing over is calling the next one through its pointer.

use std::hint::black_box;

use super::course::{Course, Known};
use super::{Kind, MadeOf, Needs, Scene};
use crate::mechanism::Explanation;
use doorbell_harness::side::SideError;

/// An indirect call through the ready queue.
#[derive(Debug)]
pub(super) struct Call;

impl Kind for Call {
    fn name(&self) -> &'static str {
        "call"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "control: an indirect function call through the same queue",
            how: "Takes the first task from the ready queue, calls its function through a pointer, and puts the task back \
                  if it has turns left. The function does a turn: it writes the working set, counts, and returns.",
            kernel: "Nothing.",
            limits: "It is what every other kind pays too: queue, count, stamps. What a kind costs above it is the price \
                     of its way of handing over, less what the compiler saves where it may inline the turn, as in stackless.",
            sources: &["Agner Fog, Optimizing subroutines in assembly language, indirect calls"],
        }
    }
    fn made_of(&self) -> MadeOf {
        MadeOf::Code
    }
    fn needs(&self) -> Needs {
        Needs { tasks: 0, descriptors: 0, mappings: 0, bytes: 256 }
    }
    fn generation(&self, scene: &Scene, course: &mut Course) -> Result<(), SideError> {
        course.starts(scene);
        let calls: Vec<fn(&Scene, u32) -> bool> =
            vec![black_box(turn as fn(&Scene, u32) -> bool); scene.tasks as usize];
        scene.queue.fill();
        course.made(scene, Known::None)?;
        while let Some(task) = scene.queue.pop() {
            if calls[task as usize](scene, task) {
                scene.queue.push(task);
            }
        }
        course.done(scene, Known::None)
    }
}

#[inline(never)]
fn turn(scene: &Scene, task: u32) -> bool {
    scene.turn(task)
}
