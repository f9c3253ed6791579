// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a bare clone: a task that shares memory, files and signal handlers with its maker.

use std::ffi::c_void;
use std::io;

use corosensei::stack::{DefaultStack, Stack};
use rustix::process::Pid;

use super::tasks::Children;
use super::{Explanation, Fault, MadeOf, Measured, Needs, PLAIN, TaskContext, TaskKind, stack_pool};

const SHARED: i32 = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_SYSVSEM
    | libc::SIGCHLD;

pub(super) const KIND: TaskKind = TaskKind {
    name: "life-clone",
    explanation: Explanation {
        summary: "cloning a task that shares everything and ends at once, and waiting for it",
        how: "Calls clone for each task with CLONE_VM, CLONE_FS, CLONE_FILES, CLONE_SIGHAND \
            and CLONE_SYSVSEM on a stack of its own, all before the first is waited for.",
        kernel: "A task, a kernel stack and a process number; no page table is copied.",
        limits: "What life-thread costs above it is the C library: stack, guard page, \
            thread-local storage, join.",
        sources: &["clone(2)", "Linux kernel/fork.c, kernel_clone"],
    },
    measured: Measured::Lives,
    made_of: MadeOf::Threads,
    // A touched page of stack and its page table, the kernel's
    // stack of 16 KiB, its task and what hangs on it.
    needs: Needs { tasks: 1, descriptors: 0, mappings: 2, bytes: 36 << 10 },
    generation: |task_context, generations| {
        let clones = Clones::new(task_context, task_context.tasks as usize)?;
        // SAFETY: the children are made after `clones`, so they go first however this ends, and they go
        // when all of them have been waited for. Each task has a stack of its own.
        let make = |own| unsafe { clones.start(own, SHARED) };
        let children = Children::made(task_context, generations, task_context.tasks, "a task", make)?;
        generations.run(task_context);
        children.leave()
    },
    ..PLAIN
};

/// Stacks for tasks that run in the memory of their maker, each with a guard page below it.
pub(super) struct Clones {
    stacks: Vec<DefaultStack>,
    tasks: Vec<Task>,
}

impl Drop for Clones {
    fn drop(&mut self) {
        stack_pool::give_back(self.stacks.drain(..));
    }
}

/// What a task is told.
struct Task {
    task_context: TaskContext,
    own: u32,
}

impl Clones {
    /// Room for `stacks` tasks of `task context` at a time.
    pub(super) fn new(task_context: &TaskContext, stacks: usize) -> Result<Self, Fault> {
        Ok(Self {
            stacks: (0..stacks).map(|_| stack_pool::stack()).collect::<Result<_, _>>()?,
            tasks: (0..task_context.tasks).map(|own| Task { task_context: *task_context, own }).collect(),
        })
    }

    /// Starts the task `own`, which lives once and ends.
    ///
    /// # Safety
    ///
    /// The task must have ended before this is dropped and before its stack, the one numbered `own`
    /// modulo the number of them, is used again: it runs in the memory of its maker.
    pub(super) unsafe fn start(&self, own: u32, flags: i32) -> io::Result<Pid> {
        let top = self.stacks[own as usize % self.stacks.len()].base().get() as *mut c_void;
        let task: *const Task = &raw const self.tasks[own as usize];
        // SAFETY: the stack is this task's alone until it has ended, as the caller promises, and ends at a
        // page; `task` lives as long. In shared memory the new task uses the thread-local storage
        // of the caller: `live` touches none, and leaves through the system call that ends a task.
        // JUSTIFICATION: the standard library has no clone, and to be measured is the call itself.
        let pid = unsafe { libc::clone(live, top, flags, task.cast_mut().cast::<c_void>()) };
        let failed = io::Error::last_os_error();
        if pid > 0 { Pid::from_raw(pid).ok_or(failed) } else { Err(failed) }
    }
}

extern "C" fn live(task: *mut c_void) -> i32 {
    // SAFETY: `start` gave a task that lives until this one has been waited for.
    let task = unsafe { &*task.cast::<Task>() };
    task.task_context.live(task.own);
    0
}
