// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a program as a shell begins it: forked, exec of `true`, waited for.

use super::life_posix_spawn::{PROGRAM, is_there, wait_for_programs};
use super::tasks::Children;
use super::{Explanation, MadeOf, Measured, Needs, PLAIN, TaskKind};
use doorbell_harness::fork::fork;

pub(super) const KIND: TaskKind = TaskKind {
    name: "life-fork-exec",
    explanation: Explanation {
        summary: "fork, exec of the program true, and waiting for it",
        how: "Forks a process for each task, all before the first is waited for. Each asks to \
            be killed if its parent dies (prctl) and becomes /bin/true by execve; how each \
            ended is looked at.",
        kernel: "A copy of the address space that is thrown away by exec, another program, its \
            dynamic loader if it has one, its end.",
        limits: "The program and its loader are a large part of it. life-fork is the same \
            without the program, life-posix-spawn the same without the copy.",
        sources: &["fork(2)", "execve(2)"],
    },
    measured: Measured::Lives,
    made_of: MadeOf::Processes,
    needs: Needs { tasks: 1, descriptors: 0, mappings: 0, bytes: 512 << 10 },
    available: is_there,
    generation: |task_context, generations| {
        let children =
            Children::made(task_context, generations, task_context.tasks, "a program", |_| fork(exec))?;
        generations.run(task_context);
        wait_for_programs(task_context, children)
    },
    ..PLAIN
};

/// Becomes the program, or ends with what a shell says of one that cannot be run.
fn exec() {
    let arguments = [PROGRAM.as_ptr(), std::ptr::null()];
    let environment = [std::ptr::null()];
    // SAFETY: both lists end with null and live until the program is another, as does the path.
    unsafe {
        libc::execve(PROGRAM.as_ptr(), arguments.as_ptr(), environment.as_ptr());
        libc::_exit(126)
    }
}
