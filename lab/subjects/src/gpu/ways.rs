// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every way to wait for a GPU, and to wake it: what is called, who wakes, and what it costs.

use super::Schedule::{Auto, Block, Spin, Yield};
use super::Start::{Graph, Launch, Resident, WaitValue};
use super::{Wait, Way};

/// In the order `doorbell list` shows. The one list to extend.
pub(super) const ALL: &[Way] = &[
    Way {
        name: "gpu-stream-spin",
        summary: "the stream is synchronised, spinning",
        schedule: Spin,
        start: Launch,
        wait: Wait::Stream,
        calls: "cuStreamSynchronize in a context with CU_CTX_SCHED_SPIN: the thread looks at a word \
                that the GPU writes until the stream is empty. Nobody wakes it.",
        costs: "A core for as long as the wait lasts, and nothing on top of it.",
    },
    Way {
        name: "gpu-stream-yield",
        summary: "the stream is synchronised, yielding",
        schedule: Yield,
        start: Launch,
        wait: Wait::Stream,
        calls: "cuStreamSynchronize in a context with CU_CTX_SCHED_YIELD: as spinning, with \
                sched_yield between the looks. Nobody wakes it.",
        costs: "A core that others of equal priority may take; where they do, the wait ends when \
                they leave it.",
    },
    Way {
        name: "gpu-stream-block",
        summary: "the stream is synchronised, asleep",
        schedule: Block,
        start: Launch,
        wait: Wait::Stream,
        calls: "cuStreamSynchronize in a context with CU_CTX_SCHED_BLOCKING_SYNC: the thread sleeps \
                in the driver, and the GPU's interrupt has the kernel wake it.",
        costs: "An interrupt, a sleep and a wake-up for each kernel, and a dearer wake-up the longer \
                the CPU has slept.",
    },
    Way {
        name: "gpu-stream-auto",
        summary: "the stream is synchronised, as CUDA chooses",
        schedule: Auto,
        start: Launch,
        wait: Wait::Stream,
        calls: "cuStreamSynchronize in a context with CU_CTX_SCHED_AUTO, the default: CUDA spins \
                where there are no more contexts than CPUs, and else yields.",
        costs: "That of what it chose; how long kernels take is no part of the choice.",
    },
    Way {
        name: "gpu-event-spin",
        summary: "an event is synchronised, spinning",
        schedule: Spin,
        start: Launch,
        wait: Wait::Event,
        calls: "cuEventSynchronize of an event behind the kernel, in a context with \
                CU_CTX_SCHED_SPIN: the thread looks until the event is over. Nobody wakes it.",
        costs: "A core for as long as the wait lasts, and the recording of an event for each kernel.",
    },
    Way {
        name: "gpu-event-yield",
        summary: "an event is synchronised, yielding",
        schedule: Yield,
        start: Launch,
        wait: Wait::Event,
        calls: "cuEventSynchronize in a context with CU_CTX_SCHED_YIELD: as spinning, with \
                sched_yield between the looks. Nobody wakes it.",
        costs: "A core that others of equal priority may take, and the recording of an event for \
                each kernel.",
    },
    Way {
        name: "gpu-event-auto",
        summary: "an event is synchronised, as CUDA chooses",
        schedule: Auto,
        start: Launch,
        wait: Wait::Event,
        calls: "cuEventSynchronize of an event without CU_EVENT_BLOCKING_SYNC, in a context with \
                CU_CTX_SCHED_AUTO: what PyTorch does unless told otherwise.",
        costs: "That of what CUDA chose, which spins where there are CPUs enough, and the recording \
                of an event for each kernel.",
    },
    Way {
        name: "gpu-event-block",
        summary: "an event that blocks is synchronised",
        schedule: Block,
        start: Launch,
        wait: Wait::Event,
        calls: "cuEventSynchronize of an event made with CU_EVENT_BLOCKING_SYNC: the thread sleeps \
                in the driver, and the GPU's interrupt has the kernel wake it.",
        costs: "An interrupt, a sleep and a wake-up for each kernel; the interrupt comes even if \
                nobody sleeps.",
    },
    Way {
        name: "gpu-query",
        summary: "an event is asked about without a pause",
        schedule: Auto,
        start: Launch,
        wait: Wait::Query(0),
        calls: "cuEventQuery in a loop: the thread asks until the event is over. Nobody wakes it.",
        costs: "A core for as long as the wait lasts, and the driver's lock, which each question \
                takes, kept from threads that launch.",
    },
    Way {
        name: "gpu-query-pause",
        summary: "an event is asked about every 20 µs, asleep",
        schedule: Auto,
        start: Launch,
        wait: Wait::Query(20),
        calls: "cuEventQuery, and a sleep of 20 µs between two questions: the kernel's timer wakes \
                the thread.",
        costs: "A timer's wake-up for each question; the timer is late by its slack, some 50 µs, so \
                that the end is found late by as much.",
    },
    Way {
        name: "gpu-host-eventfd",
        summary: "a host function writes an eventfd",
        schedule: Auto,
        start: Launch,
        wait: Wait::HostEventfd,
        calls: "cuLaunchHostFunc behind the kernel, and poll(2) and read(2) of an eventfd: the \
                GPU's interrupt wakes a thread of the driver's, which writes it and wakes the waiter.",
        costs: "Two wake-ups for each kernel, the driver's thread and the waiter, and a write, a poll \
                and a read of the eventfd.",
    },
    Way {
        name: "gpu-host-futex",
        summary: "a host function wakes a futex",
        schedule: Auto,
        start: Launch,
        wait: Wait::HostFutex,
        calls: "cuLaunchHostFunc behind the kernel, and a futex wait: the GPU's interrupt wakes a \
                thread of the driver's, which wakes the waiter by futex(2).",
        costs: "Two wake-ups for each kernel, the driver's thread and the waiter.",
    },
    Way {
        name: "gpu-host-bell",
        summary: "a host function rings a bell of the library",
        schedule: Auto,
        start: Launch,
        wait: Wait::HostBell,
        calls: "cuLaunchHostFunc behind the kernel, and the wait of doorbell::Bell: it spins for a \
                time that it learns, then sleeps; a thread of the driver's rings it.",
        costs: "Two wake-ups for each kernel that is longer than the spin, and the spin before it \
                where it was in vain.",
    },
    Way {
        name: "gpu-flag",
        summary: "the kernel's last store is looked at in pinned memory",
        schedule: Auto,
        start: Launch,
        wait: Wait::Flag,
        calls: "The kernel stores a word of pinned memory behind its work (st.release.sys), and the \
                thread looks at it. Nobody wakes it, and the driver is not asked.",
        costs: "A core for as long as the wait lasts; nothing of the driver's. Only a kernel that \
                one wrote oneself does it.",
    },
    Way {
        name: "gpu-write-value",
        summary: "the stream's store is looked at in pinned memory",
        schedule: Auto,
        start: Launch,
        wait: Wait::WriteValue,
        calls: "cuStreamWriteValue32 behind the kernel stores a word of pinned memory, and the \
                thread looks at it. Nobody wakes it; the kernel may be anybody's.",
        costs: "A core for as long as the wait lasts, and one more entry in the stream for each \
                kernel.",
    },
    Way {
        name: "gpu-hybrid",
        summary: "an event is asked about for a time, then blocks",
        schedule: Block,
        start: Launch,
        wait: Wait::Hybrid,
        calls: "cuEventQuery for as long as --spin says, then cuEventSynchronize of an event with \
                CU_EVENT_BLOCKING_SYNC: the GPU's interrupt wakes what was not over by then.",
        costs: "The questions where kernels are short, and both the questions and a blocking wait \
                where they are long.",
    },
    Way {
        name: "gpu-adaptive",
        summary: "doorbell::gpu: spins as long as it pays, then sleeps",
        schedule: Auto,
        start: Launch,
        wait: Wait::Adaptive,
        calls: "doorbell::gpu::Waiter: cuEventQuery with pauses for as long as it has learned that \
                it pays, then a sleep that a thread of the driver's ends, by a stream of the \
                waiter's own.",
        costs: "At most a sleep's worth of questions, then a call of the driver's thread and two \
                wake-ups.",
    },
    Way {
        name: "gpu-events",
        summary: "doorbell::gpu: one event loop, however many streams",
        schedule: Auto,
        start: Launch,
        wait: Wait::Events,
        calls: "doorbell::gpu::Events: one thread in poll(2), woken by a timer where kernels are as \
                long as those before them, and else by a thread of the driver's.",
        costs: "A timer's wake-up for all that ends at about the same time, or a call of the \
                driver's thread and two wake-ups for each kernel.",
    },
    Way {
        name: "gpu-launch",
        summary: "a launch wakes the GPU",
        schedule: Auto,
        start: Launch,
        wait: Wait::Flag,
        calls: "cuLaunchKernel of an empty kernel: the driver writes the launch into the GPU's queue \
                and rings its doorbell register; the kernel's first act is to stamp its begin.",
        costs: "The call, some microseconds of the CPU, before anything is under way.",
    },
    Way {
        name: "gpu-graph",
        summary: "the launch of a graph wakes the GPU",
        schedule: Auto,
        start: Graph,
        wait: Wait::Flag,
        calls: "cuGraphLaunch of a graph of one empty kernel that was captured before: what the \
                launch says was made ready when the graph was instantiated.",
        costs: "The call, with less to be done in it than in a launch.",
    },
    Way {
        name: "gpu-resident",
        summary: "a kernel that is there looks at pinned memory",
        schedule: Auto,
        start: Resident,
        wait: Wait::Flag,
        calls: "The thread stores a word of pinned memory, and a kernel that is there already asks \
                for it over the bus until it has changed (ld.acquire.sys).",
        costs: "A store, and no call; but a multiprocessor of the GPU is kept busy for as long as \
                the kernel is there.",
    },
    Way {
        name: "gpu-wait-value",
        summary: "a stream waits for a word of pinned memory",
        schedule: Auto,
        start: WaitValue,
        wait: Wait::Flag,
        calls: "The thread stores a word of pinned memory for which a stream waits by \
                cuStreamWaitValue32, with the kernel behind it: the GPU's front end asks for the \
                word.",
        costs: "A store, and no call then; launch and wait were put into the stream before. No \
                multiprocessor is kept busy.",
    },
];
