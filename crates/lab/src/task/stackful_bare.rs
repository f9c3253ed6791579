// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stackful coroutines without the queue: what the library costs when it is driven bare.

use super::course::{Course, Known};
use super::stackful::{NEEDS, give_back, make, walk};
use super::{Kind, MadeOf, Needs, Scene};
use crate::mechanism::Explanation;
use crate::trial::side::SideError;

/// Coroutines of the crate corosensei, one after the other.
#[derive(Debug)]
pub(super) struct StackfulBare;

impl Kind for StackfulBare {
    fn name(&self) -> &'static str {
        "stackful-bare"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "stackful coroutines resumed one after the other, without the queue",
            how: "As stackful, but the coroutines are resumed in the order of a list, lap after lap: no ready queue.",
            kernel: "Nothing.",
            limits: "It is there to be held against stackful: what that costs above it is the queue.",
            sources: &["corosensei 0.3"],
        }
    }
    fn made_of(&self) -> MadeOf {
        MadeOf::Code
    }
    fn needs(&self) -> Needs {
        NEEDS
    }
    fn generation(&self, scene: &Scene, course: &mut Course) -> Result<(), SideError> {
        course.starts(scene);
        let mut tasks = make(scene, walk)?;
        course.made(scene, Known::None)?;
        for _ in 0..scene.yields {
            for task in tasks.iter_mut().filter(|task| !task.done()) {
                task.resume(());
            }
        }
        course.done(scene, Known::None)?;
        give_back(tasks);
        Ok(())
    }
}
