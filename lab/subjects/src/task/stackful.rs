// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stackful coroutines: a stack each, from a pool, and a switch of
//! stacks in user mode from one task to the next.

use std::cell::Cell;

use corosensei::stack::DefaultStack;

use super::generations::Known;
use super::stack_switch::{self, Left, lay_out, switch};
use super::{Explanation, Fault, MadeOf, Needs, PLAIN, TaskContext, TaskKind, Unavailable, stack_pool};

pub(super) const KIND: TaskKind = TaskKind {
    name: "stackful",
    explanation: Explanation {
        summary: "stackful coroutines, stacks from a pool, each switching to the next on the \
            O(1) ready queue",
        how: "A task does a turn, puts itself at the end of the ready queue, takes the first \
            task from it and switches to that one's stack. Stacks of 16 KiB and a guard page \
            go back to a pool when their task has ended; their tops lie apart, so that they do \
            not share one set of the first cache.",
        kernel: "Nothing while they hand over. A new stack is a mapping, and its first page a fault.",
        limits: "A hand-off is one switch: there is no executor in between that could do \
            anything else. Registers that a call preserves are saved; those of floating point \
            and vectors are the compiler's business. x86-64, ARM and RISC-V of 64 bits. \
            stackful-bare is a library's way.",
        sources: &[
            "System V Application Binary Interface, AMD64 supplement, 3.2",
            "Procedure Call Standard for the Arm 64-bit Architecture, 6.1",
            "RISC-V Calling Conventions, 1.1",
        ],
    },
    made_of: MadeOf::Code,
    needs: NEEDS,
    available,
    generation: |task_context, generations| {
        generations.starts(task_context);
        let coroutines = Coroutines::make(task_context)?;
        task_context.queue.fill();
        generations.made(task_context, Known::None)?;
        if let Some(first) = task_context.queue.pop() {
            coroutines.run(first);
        }
        generations.done(task_context, Known::None)?;
        Ok(())
    },
    ..PLAIN
};

/// A touched page of stack, another of page tables and mapping, and the coroutine itself; two
/// mappings, stack and guard.
pub(super) const NEEDS: Needs = Needs { tasks: 0, descriptors: 0, mappings: 2, bytes: 8 << 10 };

/// Whether this machine has the switch.
pub(super) fn available() -> Result<(), Unavailable> {
    if stack_switch::AVAILABLE {
        return Ok(());
    }
    Err(Unavailable::because("its switch of stacks is written for x86-64, ARM and RISC-V of 64 bits"))
}

/// All tasks of a task context, each on a stack of its own.
pub(super) struct Coroutines {
    task_context: TaskContext,
    /// Where each task left off.
    left: Vec<Cell<Left>>,
    driver: Cell<Left>,
    stacks: Vec<DefaultStack>,
}

impl Coroutines {
    /// Lays every task out on a stack from the pool. Boxed, for the tasks know where it is.
    pub(super) fn make(task_context: &TaskContext) -> Result<Box<Self>, Fault> {
        let stacks = (0..task_context.tasks).map(|_| stack_pool::stack()).collect::<Result<Vec<_>, _>>()?;
        let left = vec![Cell::new(0); stacks.len()];
        let coroutines = Box::new(Self { task_context: *task_context, left, driver: Cell::new(0), stacks });
        for (number, (stack, left)) in coroutines.stacks.iter().zip(&coroutines.left).enumerate() {
            left.set(lay_out(stack, number, live));
        }
        Ok(coroutines)
    }

    /// Lets the task `first` run, and who is in the queue after it, until the queue is empty.
    pub(super) fn run(&self, first: u32) {
        self.switch(&self.driver, &self.left[first as usize], first);
    }

    /// Leaves to where `to` left off, the task `number` unless it is the
    /// driver, noting in `leave` where. Returns, as whoever comes back here
    /// brings them, the coroutines and the number of the task that left.
    #[inline(always)]
    fn switch<'coroutines>(
        &'coroutines self,
        leave: &'coroutines Cell<Left>,
        to: &Cell<Left>,
        number: u32,
    ) -> (&'coroutines Self, u32) {
        let own: *const Self = self;
        // SAFETY: a task was laid out by `make`, or left off here, on a stack that lives as long as they
        // do, and the driver left off in `run`. Nobody is gone on with twice: a task is in the
        // queue once, and no more when it has ended.
        let [coroutines, number] =
            unsafe { switch(leave, to.get(), [own.expose_provenance(), number as usize]) };
        // SAFETY: all who switch are of these coroutines, which outlive the run.
        (unsafe { &*std::ptr::with_exposed_provenance(coroutines) }, number as u32)
    }
}

impl Drop for Coroutines {
    fn drop(&mut self) {
        // A task that was not run to its end owns nothing.
        stack_pool::give_back(self.stacks.drain(..));
    }
}

/// A task's life: a turn, and giving way, as often as it is due.
extern "C" fn live(coroutines: usize, own: usize) -> ! {
    // SAFETY: who switches here for the first time brings the coroutines, as each time after.
    let (mut coroutines, mut own) =
        (unsafe { &*std::ptr::with_exposed_provenance::<Coroutines>(coroutines) }, own as u32);
    while coroutines.task_context.turn(own) {
        coroutines.task_context.queue.push(own);
        // It is in the queue itself: there is one, and if it is this very task it goes on.
        if let Some(next) = coroutines.task_context.queue.pop().filter(|next| *next != own) {
            (coroutines, own) =
                coroutines.switch(&coroutines.left[own as usize], &coroutines.left[next as usize], next);
        }
    }
    let left = &coroutines.left[own as usize];
    match coroutines.task_context.queue.pop() {
        Some(next) => coroutines.switch(left, &coroutines.left[next as usize], next),
        None => coroutines.switch(left, &coroutines.driver, own),
    };
    // Nobody goes on with a task that has had its last turn.
    std::process::abort()
}
