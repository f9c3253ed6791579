// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a stackful coroutine: on a stack from the pool, resumed once, its stack given back.

use super::course::Course;
use super::stackful::{NEEDS, give_back, make};
use super::{Kind, MadeOf, Measured, Needs, Scene};
use crate::mechanism::Explanation;
use crate::trial::side::SideError;

/// A coroutine each, on a pooled stack.
#[derive(Debug)]
pub(super) struct LifeStackful;

impl Kind for LifeStackful {
    fn name(&self) -> &'static str {
        "life-stackful"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "making a stackful coroutine on a pooled stack, resuming it once, giving the stack back",
            how: "Takes a stack from the pool and lays a coroutine on it for each task, resumes each once, which ends it, and puts the \
                  stacks back.",
            kernel: "Nothing, once the pool is full.",
            limits: "The first generation, which is not recorded, maps the stacks.",
            sources: &["corosensei 0.3"],
        }
    }
    fn measured(&self) -> Measured {
        Measured::Lives
    }
    fn made_of(&self) -> MadeOf {
        MadeOf::Code
    }
    fn needs(&self) -> Needs {
        NEEDS
    }
    fn generation(&self, scene: &Scene, course: &mut Course) -> Result<(), SideError> {
        course.starts(scene);
        let mut tasks = make(scene, |scene, own, _| {
            scene.turn(own);
        })?;
        course.run(scene);
        for task in &mut tasks {
            task.resume(());
        }
        give_back(tasks);
        Ok(())
    }
}
