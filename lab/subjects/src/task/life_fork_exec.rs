// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a program as a shell begins it: forked, exec of `true`, waited for.

use super::generations::Generations;
use super::life_posix_spawn::{PROGRAM, is_there, wait_for_programs};
use super::tasks::Children;
use super::{MadeOf, Measured, Needs, TaskContext, TaskKind};
use crate::mechanism::{Explanation, Unavailable};
use doorbell_harness::fork::fork;
use doorbell_harness::side::SideError;

#[derive(Debug)]
pub(super) struct LifeForkExec;

impl TaskKind for LifeForkExec {
    fn name(&self) -> &'static str {
        "life-fork-exec"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "fork, exec of the program true, and waiting for it",
            how: "Forks a process for each task, all before the first is waited for. Each asks to \
                be killed if its parent dies (prctl) and becomes /bin/true by execve; how each \
                ended is looked at.",
            kernel: "A copy of the address space that is thrown away by exec, another program, its \
                dynamic loader if it has one, its end.",
            limits: "The program and its loader are a large part of it. life-fork is the same \
                without the program, life-posix-spawn the same without the copy.",
            sources: &["fork(2)", "execve(2)"],
        }
    }
    fn measured(&self) -> Measured {
        Measured::Lives
    }
    fn made_of(&self) -> MadeOf {
        MadeOf::Processes
    }
    fn needs(&self) -> Needs {
        Needs { tasks: 1, descriptors: 0, mappings: 0, bytes: 512 << 10 }
    }
    fn available(&self) -> Result<(), Unavailable> {
        is_there()
    }
    fn generation(&self, task_context: &TaskContext, generations: &mut Generations) -> Result<(), SideError> {
        let children =
            Children::made(task_context, generations, task_context.tasks, "a program", |_| fork(exec))?;
        generations.run(task_context);
        wait_for_programs(task_context, children)
    }
}

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
