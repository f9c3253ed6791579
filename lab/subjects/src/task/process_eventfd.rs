// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that hand over by an eventfd.

use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::generations::Generations;
use super::tasks::{self, Pass};
use super::{MadeOf, Needs, TaskContext, TaskKind};
use crate::mechanism::{Explanation, Fault};
use doorbell_harness::fanout::allow_descriptors;
use doorbell_harness::side::SideError;

/// A process each, and an eventfd each to read from.
#[derive(Debug)]
pub(super) struct ProcessEventfd;

impl TaskKind for ProcessEventfd {
    fn name(&self) -> &'static str {
        "process-eventfd"
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "processes that hand over by eventfd",
            how: "As process-futex, with an eventfd for each process: 1 written gives control, and \
                the owner sleeps in read.",
            kernel: "Adds to a counter, wakes the reader, switches to another address space.",
            limits: "A descriptor a process, which every process inherits.",
            sources: &["eventfd(2)", "Linux fs/eventfd.c"],
        }
    }
    fn made_of(&self) -> MadeOf {
        MadeOf::Processes
    }
    fn needs(&self) -> Needs {
        Needs { tasks: 1, descriptors: 1, mappings: 0, bytes: 240 << 10 }
    }
    fn generation(&self, task_context: &TaskContext, generations: &mut Generations) -> Result<(), SideError> {
        allow_descriptors(self.needs().descriptors * u64::from(task_context.tasks))
            .map_err(Fault::of("setrlimit"))?;
        let events =
            (0..task_context.tasks).map(|_| eventfd(0, EventfdFlags::CLOEXEC)).collect::<Result<_, _>>();
        tasks::processes(task_context, generations, &Events(events.map_err(Fault::of("eventfd"))?))
    }
}

/// An eventfd for each task.
struct Events(Vec<OwnedFd>);

impl Pass for Events {
    #[inline]
    fn give(&self, to: u32) -> Result<(), Fault> {
        loop {
            match rustix::io::write(&self.0[to as usize], &1_u64.to_ne_bytes()) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Fault::new("write", error)),
            }
        }
    }

    #[inline]
    fn take(&self, own: u32) -> Result<(), Fault> {
        let mut count = [0; 8];
        loop {
            match rustix::io::read(&self.0[own as usize], &mut count) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Fault::new("read", error)),
            }
        }
    }
}
