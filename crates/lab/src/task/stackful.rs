// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stackful coroutines: a stack each, from a pool, and a switch of stacks in user mode.

use std::cell::RefCell;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::course::{Course, Known};
use super::{Kind, MadeOf, Needs, Scene};
use crate::mechanism::{Explanation, Fault};
use crate::trial::side::SideError;

/// Coroutines of the crate corosensei on the shared queue.
#[derive(Debug)]
pub(super) struct Stackful;

/// Bytes of a stack, its guard page apart.
const STACK: usize = 16 << 10;

thread_local! {
    /// Stacks of coroutines that have ended.
    static POOL: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// A coroutine that takes nothing, yields nothing and returns nothing.
pub(super) type Own = Coroutine<(), (), (), DefaultStack>;

impl Kind for Stackful {
    fn name(&self) -> &'static str {
        "stackful"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "stackful coroutines (crate corosensei), stacks from a pool, on the O(1) ready queue",
            how: "Takes the first task from the ready queue and resumes its coroutine, which does a turn and suspends; who has \
                  suspended is put back. Stacks of 16 KiB and a guard page go back to a pool when their coroutine ends.",
            kernel: "Nothing while they hand over. A new stack is a mapping, and its first page a fault.",
            limits: "A hand-off is two switches of stacks, to the executor and on. Registers that a call preserves are saved; \
                     those of floating point and vectors are the compiler's business.",
            sources: &["corosensei 0.3, src/arch/x86_64.rs"],
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
        scene.queue.fill();
        course.made(scene, Known::None)?;
        while let Some(own) = scene.queue.pop() {
            if let CoroutineResult::Yield(()) = tasks[own as usize].resume(()) {
                scene.queue.push(own);
            }
        }
        course.done(scene, Known::None)?;
        give_back(tasks);
        Ok(())
    }
}

/// A touched page of stack, another of page tables and mapping, and the coroutine itself; two mappings, stack and guard.
pub(super) const NEEDS: Needs = Needs { tasks: 0, descriptors: 0, mappings: 2, bytes: 8 << 10 };

/// A task's life: a turn, and giving way, as often as it is due.
pub(super) fn walk(scene: &Scene, own: u32, yielder: &Yielder<(), ()>) {
    while scene.turn(own) {
        yielder.suspend(());
    }
}

/// All tasks of a scene as coroutines that do `walk`, on stacks from the pool.
pub(super) fn make(
    scene: &Scene,
    walk: impl Fn(&Scene, u32, &Yielder<(), ()>) + Copy + 'static,
) -> Result<Vec<Own>, SideError> {
    let mut tasks = Vec::with_capacity(scene.tasks as usize);
    for own in 0..scene.tasks {
        let scene = *scene;
        tasks.push(Own::with_stack(stack()?, move |yielder, ()| walk(&scene, own, yielder)));
    }
    Ok(tasks)
}

/// A stack that somebody has left, or a new one.
fn stack() -> Result<DefaultStack, SideError> {
    match POOL.with_borrow_mut(Vec::pop) {
        Some(stack) => Ok(stack),
        None => Ok(DefaultStack::new(STACK).map_err(Fault::of("mmap"))?),
    }
}

/// Gives the stacks of coroutines that have ended back to the pool.
pub(super) fn give_back(tasks: Vec<Own>) {
    let ended = tasks.into_iter().filter(Own::done).map(Own::into_stack);
    POOL.with_borrow_mut(|pool| pool.extend(ended));
}
