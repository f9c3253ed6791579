// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that hand over by a byte through a pipe.

use std::os::fd::OwnedFd;

use rustix::io::{read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};

use super::tasks::{self, Pass};
use super::{Explanation, Fault, MadeOf, Needs, PLAIN, TaskKind};
use doorbell_harness::fanout::allow_descriptors;

const NEEDS: Needs = Needs { tasks: 1, descriptors: 2, mappings: 0, bytes: 256 << 10 };

pub(super) const KIND: TaskKind = TaskKind {
    name: "process-pipe",
    explanation: Explanation {
        summary: "processes that hand over by a byte through a pipe",
        how: "As process-futex, with a pipe for each process: a byte written gives control, \
            and the owner sleeps in read.",
        kernel: "Copies a byte in and out under the pipe's lock, wakes the reader, switches to \
            another address space.",
        limits: "Two descriptors a process, which every process inherits: the table of \
            descriptors is copied at every fork. Beyond fs.pipe-user-pages-soft pipes get \
            smaller buffers, which a byte does not mind.",
        sources: &["pipe(7)", "Linux fs/pipe.c"],
    },
    made_of: MadeOf::Processes,
    needs: NEEDS,
    generation: |task_context, generations| {
        allow_descriptors(NEEDS.descriptors * u64::from(task_context.tasks))
            .map_err(Fault::of("setrlimit"))?;
        let pipes = (0..task_context.tasks).map(|_| pipe_with(PipeFlags::CLOEXEC)).collect::<Result<_, _>>();
        tasks::processes(task_context, generations, &Pipes(pipes.map_err(Fault::of("pipe2"))?))
    },
    ..PLAIN
};

/// The two ends of a pipe for each task.
struct Pipes(Vec<(OwnedFd, OwnedFd)>);

impl Pass for Pipes {
    #[inline]
    fn give(&self, to: u32) -> Result<(), Fault> {
        retry_on_intr(|| write(&self.0[to as usize].1, &[1])).map(drop).map_err(Fault::of("write"))
    }

    #[inline]
    fn take(&self, own: u32) -> Result<(), Fault> {
        match retry_on_intr(|| read(&self.0[own as usize].0, &mut [0_u8; 1])) {
            Ok(1) => Ok(()),
            Ok(_) => Err(Fault::new("read", "the pipe has ended")),
            Err(error) => Err(Fault::new("read", error)),
        }
    }
}
