// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `doorbell switch` measures: operations of the kernel and the
//! CPU of which every wake-up is made, one file each.
//!
//! An operation runs in a trial's sides like a mechanism does, but notifies nobody for its own
//! sake: it is timed in
//! batches ([`Pattern::Operation`](doorbell_results::configuration::Pattern::Operation)). There are
//! two kinds. An operation of one side (`alone`) is a call or an instruction sequence repeated; an
//! operation of two sides is a protocol that makes the kernel switch between them, either in
//! lockstep (`exchange`) or each as fast as it is let (`stream`, `yields`).
//!
//! How many switches a protocol makes is never assumed: `figures` divides by the count the kernel
//! kept. Adding an operation is adding a file here and one line in [`all`].

// Also what the files here are made of.
use crate::mechanism::{Contexts, Explanation, Fault, Links, OpenError, Site, Unavailable, Word};
use doorbell_harness::scheduler::may_enter;
use doorbell_results::configuration::Configuration;
use doorbell_results::nearest::{self, Unknown};
use doorbell_results::record::{Figure, Record, Subject};

mod alone;
mod cache_line;
mod clock_read;
mod context1;
mod count;
mod echo_tcp;
mod exchange;
mod family;
mod figures;
mod futex_wake_all;
mod getppid;
mod gettid;
mod gettid_syscall;
mod hackbench;
mod handover;
mod handover_mq;
mod handover_mutex;
mod handover_semop;
mod handover_signal;
mod line_cas;
mod message_queue;
mod page_fault_anonymous;
mod page_fault_file;
mod pages;
mod pipes;
mod preempt;
mod read_nothing;
mod semaphore_set;
mod signal_self;
mod stream;
mod stream_mq;
mod stream_pipe;
mod switch_futex;
mod switch_pipe;
mod switch_yield;
mod timectxsw;
mod timed;
mod timetctxsw2;
mod touch;
mod turns_semop;
mod yields;

pub use family::Operations;

/// Who takes part in an operation, and what is counted.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// Whether both sides take part, and the kernel switches between them or wakes one for the
    /// other; else one repeats it and the other leaves at once.
    pub two_sided: bool,
    /// What one operation is: `call`, `fault`, `round`, …
    pub unit: &'static str,
    /// Operations between two clock readings that keep the reading
    /// below some percent of what is timed.
    pub batch: u32,
}

impl Form {
    const fn two_sides(unit: &'static str, batch: u32) -> Self {
        Self { two_sided: true, unit, batch }
    }
    const fn alone(unit: &'static str, batch: u32) -> Self {
        Self { two_sided: false, unit, batch }
    }
}

/// Sets an operation up in the trial's host, before the sides exist.
type Opens = fn(&Site, &Configuration) -> Result<Box<dyn Links>, OpenError>;

/// Something of the kernel or the CPU that is timed.
#[derive(Debug)]
pub struct Operation {
    /// The name on the command line and in result files.
    pub name: &'static str,
    pub form: Form,
    /// The text of `doorbell explain`.
    pub explanation: Explanation,
    /// The only kind of sides between which it can be run, if it is not both.
    only: Option<Contexts>,
    /// Whether this machine has it.
    pub available: fn() -> Result<(), Unavailable>,
    open: Opens,
    /// Whether it is part of a run that names no operation: the
    /// protocols of other tools are for comparisons with them.
    pub usual: bool,
    /// Whether both sides can share one CPU and still get on.
    pub shares_a_core: bool,
    /// Whether it makes page faults, so that its time is also told by fault.
    faults: bool,
    /// The figure of the tool whose protocol this is, as that tool computes it from the same run.
    classic: fn(&Record) -> Option<Figure>,
}

/// What an operation is that says nothing else of itself.
const PLAIN: Operation = Operation {
    name: "",
    form: Form::alone("", 1),
    explanation: Explanation { summary: "", how: "", kernel: "", limits: "", sources: &[] },
    only: None,
    available: || Ok(()),
    open: |_, _| Err(OpenError::call("open", "this operation opens nothing")),
    usual: true,
    shares_a_core: true,
    faults: false,
    classic: |_| None,
};

impl Operation {
    /// Whether it can be run between sides of this kind.
    pub fn joins(&self, contexts: Contexts) -> bool {
        self.only.is_none_or(|only| only == contexts)
    }
    /// What it is, as it is stored with what was measured.
    pub fn subject(&self) -> Subject {
        Subject::Operation { two_sided: self.form.two_sided, unit: self.form.unit.to_owned() }
    }
    /// Whether `configuration` can be run here, and what is lacking if not: the operation itself,
    /// its kind of sides, or the right to the scheduling policy.
    pub fn fits(&self, configuration: &Configuration) -> Result<(), Unavailable> {
        if !self.joins(configuration.contexts) {
            let contexts = configuration.contexts;
            return Err(Unavailable::because(format!("{} does not join {contexts:?}", self.name)));
        }
        may_enter(configuration.scheduler, &configuration.placement)
            .map_err(|refused| Unavailable::because(refused.to_string()))?;
        (self.available)()
    }
}

/// Every operation, in the order `doorbell list` shows. The one list to extend.
// A crate that inlined it would compile every loop behind it once more.
#[inline(never)]
pub fn all() -> &'static [&'static Operation] {
    &[
        &clock_read::OPERATION,
        &cache_line::OPERATION,
        &getppid::OPERATION,
        &gettid::OPERATION,
        &gettid_syscall::OPERATION,
        &read_nothing::OPERATION,
        &page_fault_anonymous::OPERATION,
        &page_fault_file::OPERATION,
        &signal_self::OPERATION,
        &switch_yield::OPERATION,
        &switch_futex::OPERATION,
        &switch_pipe::OPERATION,
        &context1::OPERATION,
        &timectxsw::OPERATION,
        &timetctxsw2::OPERATION,
        &touch::OPERATION,
        &line_cas::OPERATION,
        &handover_mutex::OPERATION,
        &handover_semop::OPERATION,
        &handover_mq::OPERATION,
        &handover_signal::OPERATION,
        &stream_pipe::OPERATION,
        &stream_mq::OPERATION,
        &turns_semop::OPERATION,
        &echo_tcp::OPERATION,
        &futex_wake_all::OPERATION,
        &hackbench::OPERATION,
        &preempt::UINTR_TIMER,
        &preempt::SIGNAL_TIMER,
        &preempt::TIMERFD,
        &preempt::WATCHER,
    ]
}

/// The operation called `name`, or the nearest name if there is none.
pub fn find(name: &str) -> Result<&'static Operation, Unknown> {
    nearest::find("operation", all().iter().copied(), |operation| operation.name, name)
}
