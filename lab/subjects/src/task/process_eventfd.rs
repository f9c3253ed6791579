// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that hand over by an eventfd.

use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, retry_on_intr, write};

use super::tasks::{self, Pass};
use super::{Explanation, Fault, MadeOf, Needs, PLAIN, TaskKind};
use doorbell_harness::fanout::allow_descriptors;

const NEEDS: Needs = Needs { tasks: 1, descriptors: 1, mappings: 0, bytes: 240 << 10 };

pub(super) const KIND: TaskKind = TaskKind {
    name: "process-eventfd",
    explanation: Explanation {
        summary: "processes that hand over by eventfd",
        how: "As process-futex, with an eventfd for each process: 1 written gives control, and \
            the owner sleeps in read.",
        kernel: "Adds to a counter, wakes the reader, switches to another address space.",
        limits: "A descriptor a process, which every process inherits.",
        sources: &["eventfd(2)", "Linux fs/eventfd.c"],
    },
    made_of: MadeOf::Processes,
    needs: NEEDS,
    generation: |task_context, generations| {
        allow_descriptors(NEEDS.descriptors * u64::from(task_context.tasks))
            .map_err(Fault::of("setrlimit"))?;
        let events =
            (0..task_context.tasks).map(|_| eventfd(0, EventfdFlags::CLOEXEC)).collect::<Result<_, _>>();
        tasks::processes(task_context, generations, &Events(events.map_err(Fault::of("eventfd"))?))
    },
    ..PLAIN
};

/// An eventfd for each task.
struct Events(Vec<OwnedFd>);

impl Pass for Events {
    #[inline]
    fn give(&self, to: u32) -> Result<(), Fault> {
        retry_on_intr(|| write(&self.0[to as usize], &1_u64.to_ne_bytes()))
            .map(drop)
            .map_err(Fault::of("write"))
    }

    #[inline]
    fn take(&self, own: u32) -> Result<(), Fault> {
        retry_on_intr(|| read(&self.0[own as usize], &mut [0_u8; 8])).map(drop).map_err(Fault::of("read"))
    }
}
