// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `doorbell switch` measures: operations of the kernel and the
//! CPU of which every wake-up is made, one file each.
//!
//! An operation runs in a trial's sides like a mechanism does, but notifies nobody for its own
//! sake: it is timed in
//! batches ([`Pattern::Operation`](doorbell_results::configuration::Pattern::Operation)). There are
//! two kinds. An operation of one side (`alone`) is a call or an instruction sequence repeated; an
//! operation of two sides is a protocol that makes the kernel switch between them, either in
//! lockstep (`exchange`) or each as fast as it is let (`side_by_side`).
//!
//! How many switches a protocol makes is never assumed: [`figures`] divides by the count the kernel
//! kept. Adding an operation is adding a file here and one line in [`all`].

use crate::mechanism::{Contexts, Explanation, Links, OpenError, Site, Unavailable};
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
pub mod figures;
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
mod pipes;
mod preempt;
mod read_nothing;
mod semaphore_set;
mod side_by_side;
mod signal_self;
mod stream;
mod stream_mq;
mod stream_pipe;
mod switch_futex;
mod switch_pipe;
mod switch_yield;
mod system_call;
mod timectxsw;
mod timed;
mod timetctxsw2;
mod touch;
mod turns_semop;

pub use family::Operations;
use system_call::Bare;

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

/// Something of the kernel or the CPU that is timed.
pub trait Operation: Sync {
    /// The name on the command line and in result files.
    fn name(&self) -> &'static str;
    /// Who takes part, and what is counted.
    fn form(&self) -> Form;
    /// The text of `doorbell explain`.
    fn explanation(&self) -> Explanation;
    /// Whether it can be run between sides of this kind.
    fn joins(&self, contexts: Contexts) -> bool {
        let _ = contexts;
        true
    }
    /// Whether this machine has it.
    fn available(&self) -> Result<(), Unavailable> {
        Ok(())
    }
    /// Sets it up in the trial's host, before the sides exist.
    fn open(&self, site: &Site, configuration: &Configuration) -> Result<Box<dyn Links>, OpenError>;
    /// Whether it is part of a run that names no operation: the
    /// protocols of other tools are for comparisons with them.
    fn usual(&self) -> bool {
        true
    }
    /// Whether both sides can share one CPU and still get on.
    fn shares_a_core(&self) -> bool {
        true
    }
    /// Whether it makes page faults, so that its time is also told by fault.
    fn faults(&self) -> bool {
        false
    }
    /// The figure of the tool whose protocol this is, as that tool computes it from the same run.
    fn classic(&self, record: &Record) -> Option<Figure> {
        let _ = record;
        None
    }
}

impl dyn Operation {
    /// What it is, as it is stored with what was measured.
    pub fn subject(&self) -> Subject {
        let Form { two_sided, unit, .. } = self.form();
        Subject::Operation { two_sided, unit: unit.to_owned() }
    }
    /// Whether `configuration` can be run here, and what is lacking if not: the operation itself,
    /// its kind of sides, or the right to the scheduling policy.
    pub fn fits(&self, configuration: &Configuration) -> Result<(), Unavailable> {
        if !self.joins(configuration.contexts) {
            return Err(Unavailable::because(format!(
                "{} does not join {:?}",
                self.name(),
                configuration.contexts
            )));
        }
        may_enter(configuration.scheduler, &configuration.placement)
            .map_err(|refused| Unavailable::because(refused.to_string()))?;
        self.available()
    }
}

/// Every operation, in the order `doorbell list` shows. The one list to extend.
// A crate that inlined it would compile every loop behind it once more.
#[inline(never)]
pub fn all() -> &'static [&'static dyn Operation] {
    &[
        &clock_read::ClockRead,
        &cache_line::CacheLink,
        &Bare(getppid::Getppid),
        &Bare(gettid::Gettid),
        &Bare(gettid_syscall::GettidSyscall),
        &read_nothing::ReadNothing,
        &page_fault_anonymous::PageFaultAnonymous,
        &page_fault_file::PageFaultFile,
        &signal_self::SignalSelf,
        &switch_yield::SwitchYield,
        &switch_futex::SwitchFutex,
        &switch_pipe::SwitchPipe,
        &context1::Context1,
        &timectxsw::Timectxsw,
        &timetctxsw2::Timetctxsw2,
        &touch::Touch,
        &line_cas::LineCas,
        &handover_mutex::HandoverMutex,
        &handover_semop::HandoverSemop,
        &handover_mq::HandoverMq,
        &handover_signal::HandoverSignal,
        &stream_pipe::StreamPipe,
        &stream_mq::StreamMq,
        &turns_semop::TurnsSemop,
        &echo_tcp::EchoTcp,
        &futex_wake_all::FutexWakeAll,
        &hackbench::Hackbench,
        &preempt::Preempt::UintrTimer,
        &preempt::Preempt::SignalTimer,
        &preempt::Preempt::Timerfd,
        &preempt::Preempt::Watcher,
    ]
}

/// The operation called `name`, or the nearest name if there is none.
pub fn find(name: &str) -> Result<&'static dyn Operation, Unknown> {
    nearest::find("operation", all().iter().copied(), |operation| operation.name(), name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_is_found_and_none_is_used_twice_or_by_a_mechanism() {
        let mut names: BTreeSet<&str> = crate::mechanism::all().iter().map(|entry| entry.name()).collect();
        for operation in all() {
            assert!(names.insert(operation.name()), "{} is used twice", operation.name());
            assert_eq!(find(operation.name()).unwrap().name(), operation.name());
        }
    }
}
