// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that hand over by a byte through a pipe.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::generations::Generations;
use super::tasks::{self, Pass};
use super::{MadeOf, Needs, TaskContext, TaskKind};
use crate::mechanism::{Explanation, Fault};
use doorbell_harness::fanout::allow_descriptors;
use doorbell_harness::side::SideError;

/// A process each, and a pipe each to read from.
#[derive(Debug)]
pub(super) struct ProcessPipe;

impl TaskKind for ProcessPipe {
    fn name(&self) -> &'static str {
        "process-pipe"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "processes that hand over by a byte through a pipe",
            how: "As process-futex, with a pipe for each process: a byte written gives control, \
                and the owner sleeps in read.",
            kernel: "Copies a byte in and out under the pipe's lock, wakes the reader, switches to \
                another address space.",
            limits: "Two descriptors a process, which every process inherits: the table of \
                descriptors is copied at every fork. Beyond fs.pipe-user-pages-soft pipes get \
                smaller buffers, which a byte does not mind.",
            sources: &["pipe(7)", "Linux fs/pipe.c"],
        }
    }
    fn made_of(&self) -> MadeOf {
        MadeOf::Processes
    }
    fn needs(&self) -> Needs {
        Needs { tasks: 1, descriptors: 2, mappings: 0, bytes: 256 << 10 }
    }
    fn generation(&self, task_context: &TaskContext, generations: &mut Generations) -> Result<(), SideError> {
        allow_descriptors(self.needs().descriptors * u64::from(task_context.tasks))
            .map_err(Fault::of("setrlimit"))?;
        let pipes = (0..task_context.tasks).map(|_| pipe_with(PipeFlags::CLOEXEC)).collect::<Result<_, _>>();
        tasks::processes(task_context, generations, &Pipes(pipes.map_err(Fault::of("pipe2"))?))
    }
}

/// The two ends of a pipe for each task.
struct Pipes(Vec<(OwnedFd, OwnedFd)>);

impl Pass for Pipes {
    #[inline]
    fn give(&self, to: u32) -> Result<(), Fault> {
        loop {
            match rustix::io::write(&self.0[to as usize].1, &[1]) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Fault::new("write", error)),
            }
        }
    }

    #[inline]
    fn take(&self, own: u32) -> Result<(), Fault> {
        let mut byte = [0];
        loop {
            match rustix::io::read(&self.0[own as usize].0, &mut byte) {
                Ok(1) => return Ok(()),
                Ok(_) => return Err(Fault::new("read", "the pipe has ended")),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Fault::new("read", error)),
            }
        }
    }
}
