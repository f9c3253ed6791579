// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a program: posix_spawn of `true`, waited for.

use std::ffi::CStr;
use std::io;

use rustix::process::Pid;

use super::tasks::Children;
use super::{Explanation, Fault, MadeOf, Measured, Needs, PLAIN, TaskContext, TaskKind, Unavailable};
use doorbell_harness::side::SideError;

/// A program that ends at once, and well.
pub(super) const PROGRAM: &CStr = c"/bin/true";

pub(super) const KIND: TaskKind = TaskKind {
    name: "life-posix-spawn",
    explanation: Explanation {
        summary: "posix_spawn of the program true, and waiting for it",
        how: "Spawns /bin/true for each task, all before the first is waited for, and looks at \
            how each ended.",
        kernel: "vfork, exec of another program, its dynamic loader, its end.",
        limits: "The program and its loader are most of it: it is what a shell pays for a \
            command, not what a task costs.",
        sources: &["posix_spawn(3)"],
    },
    measured: Measured::Lives,
    made_of: MadeOf::Processes,
    needs: Needs { tasks: 1, descriptors: 0, mappings: 0, bytes: 512 << 10 },
    available: is_there,
    generation: |task_context, generations| {
        let children =
            Children::made(task_context, generations, task_context.tasks, "a program", |_| spawn())?;
        generations.run(task_context);
        wait_for_programs(task_context, children)
    },
    ..PLAIN
};

/// Whether the program can be run here.
pub(super) fn is_there() -> Result<(), Unavailable> {
    let there = rustix::fs::access(PROGRAM, rustix::fs::Access::EXEC_OK);
    there.map_err(|error| {
        Unavailable::because(format!("{PROGRAM:?} cannot be run: {error}; install coreutils"))
    })
}

/// Waits until all have ended, each of which counts if it ended well.
pub(super) fn wait_for_programs(task_context: &TaskContext, children: Children) -> Result<(), SideError> {
    children.leave_after(|own, status| match status.exit_status() {
        Some(0) => {
            task_context.live(own);
            Ok(())
        }
        _ => Err(Fault::new("waitpid", format!("program {own} ended with {status:?}")).into()),
    })
}

fn spawn() -> io::Result<Pid> {
    let mut pid = 0;
    let arguments = [PROGRAM.as_ptr().cast_mut(), std::ptr::null_mut()];
    let environment = [std::ptr::null_mut()];
    // SAFETY: both lists end with null and live through the call, as does the path; null asks for no
    // file actions and no attributes.
    // JUSTIFICATION: std::process::Command adds pipes and a look-up to what is to be measured.
    let error = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            PROGRAM.as_ptr(),
            std::ptr::null(),
            std::ptr::null(),
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    };
    match Pid::from_raw(pid) {
        Some(pid) if error == 0 => Ok(pid),
        _ => Err(io::Error::from_raw_os_error(error)),
    }
}
