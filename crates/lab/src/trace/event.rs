// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events that tell of a wake-up, what is kept of each, and which of them a tracer asks for.
//!
//! Adding an event is adding one line in [`KINDS`] and, if it says something new, a variant of [`What`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::format::Format;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// When, in picoseconds from the notifier's stamp where it stands with a wake; before that in ticks of the trace clock.
    pub at: i64,
    /// The CPU on which it happened.
    pub cpu: u32,
    /// The task that ran there; 0 is the idle task.
    pub task: i32,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum What {
    /// The task entered the kernel by a system call.
    CallEnters {
        /// Its number.
        number: i64,
    },
    /// The task goes back to user mode from a system call.
    CallReturns {
        /// Its number.
        number: i64,
    },
    /// The kernel begins to wake a task.
    Waking {
        /// The task.
        task: i32,
    },
    /// The task is runnable.
    Runnable {
        /// The task.
        task: i32,
        /// The CPU it is to run on.
        on: u32,
    },
    /// The CPU turns from one task to another.
    Switch {
        /// The one that leaves.
        from: i32,
        /// Its name.
        from_name: String,
        /// Its state as a bit mask; 0 while it would go on running.
        state: i64,
        /// The one that comes.
        to: i32,
        /// Its name.
        to_name: String,
        /// The priority of the one that comes, as the kernel counts: below 100 is real time, smaller comes first.
        to_priority: i32,
    },
    /// A task is moved between CPUs.
    Migrates {
        /// The task.
        task: i32,
        /// Where it was.
        from: u32,
        /// Where it goes.
        to: u32,
    },
    /// An interrupt is sent to another CPU.
    InterruptSent {
        /// To which.
        to: u32,
    },
    /// Another CPU is told by a flag that its idle loop looks at, without an interrupt.
    IdleTold {
        /// Which.
        cpu: u32,
    },
    /// An interrupt of another CPU, or of the CPU's own timer, is taken.
    InterruptTaken {
        /// Its vector's name.
        name: String,
    },
    /// It is done.
    InterruptDone {
        /// Its vector's name.
        name: String,
    },
    /// A device's interrupt is taken.
    DeviceTaken {
        /// Its number.
        number: i64,
    },
    /// It is done.
    DeviceDone {
        /// Its number.
        number: i64,
    },
    /// Deferred work of interrupts begins.
    SoftBegins {
        /// Its number.
        number: i64,
    },
    /// It is done.
    SoftDone {
        /// Its number.
        number: i64,
    },
    /// The CPU goes idle.
    Idles {
        /// The state it enters.
        state: i64,
    },
    /// The CPU leaves its idle state.
    Wakes,
    /// The task met a page that was not there.
    Fault,
}

/// The vector by which another CPU asks this one to look for something to run.
pub const RESCHEDULE: &str = "reschedule";
/// The vector by which another CPU has this one do something, such as making a task runnable.
pub const CALL_FUNCTION: &str = "call function";

impl What {
    /// Whether it shows that a CPU was reached by another: it took an interrupt of one, or left its idle state.
    pub fn reached(&self) -> bool {
        match self {
            Self::InterruptTaken { name } => [RESCHEDULE, CALL_FUNCTION].contains(&name.as_str()),
            Self::Wakes => true,
            _ => false,
        }
    }
}

/// Which of an event's occurrences are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Those in which a field names one of the sides.
    Sides(&'static [&'static str]),
    /// All on the traced CPUs.
    Cpus,
}

/// A kind of event.
#[derive(Debug)]
pub struct Kind {
    /// The subsystem.
    pub system: &'static str,
    /// Its name.
    pub name: &'static str,
    stages: Option<Of>,
    causes: Of,
    read: fn(&Fields) -> Option<What>,
}

impl Kind {
    /// What is recorded for the stages of a wake.
    pub fn for_stages(&self) -> Option<Of> {
        self.stages
    }
    /// What is recorded for the causes of slow ones.
    pub fn for_causes(&self) -> Option<Of> {
        Some(self.causes)
    }
}

/// Every kind. The one list to extend.
pub const KINDS: &[Kind] = &[
    kind("raw_syscalls", "sys_enter", Some(BY), BY, |f| Some(What::CallEnters { number: f.number("id")? })),
    kind("raw_syscalls", "sys_exit", Some(BY), BY, |f| Some(What::CallReturns { number: f.number("id")? })),
    kind("sched", "sched_waking", Some(PID), PID, |f| Some(What::Waking { task: f.task("pid")? })),
    kind("sched", "sched_wakeup", Some(PID), PID, |f| {
        Some(What::Runnable { task: f.task("pid")?, on: f.cpu("target_cpu")? })
    }),
    kind("sched", "sched_switch", Some(Of::Sides(&["prev_pid", "next_pid"])), Of::Cpus, switch),
    kind("sched", "sched_migrate_task", Some(PID), PID, |f| {
        Some(What::Migrates { task: f.task("pid")?, from: f.cpu("orig_cpu")?, to: f.cpu("dest_cpu")? })
    }),
    kind("sched", "sched_wake_idle_without_ipi", Some(Of::Cpus), Of::Cpus, |f| {
        Some(What::IdleTold { cpu: f.cpu("cpu")? })
    }),
    kind("ipi", "ipi_send_cpu", Some(Of::Cpus), Of::Cpus, |f| {
        Some(What::InterruptSent { to: f.cpu("cpu")? })
    }),
    kind("irq_vectors", "reschedule_entry", Some(Of::Cpus), Of::Cpus, |_| taken(RESCHEDULE)),
    kind("irq_vectors", "reschedule_exit", None, Of::Cpus, |_| done(RESCHEDULE)),
    kind("irq_vectors", "call_function_single_entry", Some(Of::Cpus), Of::Cpus, |_| taken(CALL_FUNCTION)),
    kind("irq_vectors", "call_function_single_exit", None, Of::Cpus, |_| done(CALL_FUNCTION)),
    kind("irq_vectors", "local_timer_entry", None, Of::Cpus, |_| taken("timer")),
    kind("irq_vectors", "local_timer_exit", None, Of::Cpus, |_| done("timer")),
    kind("irq", "irq_handler_entry", None, Of::Cpus, |f| {
        Some(What::DeviceTaken { number: f.number("irq")? })
    }),
    kind("irq", "irq_handler_exit", None, Of::Cpus, |f| Some(What::DeviceDone { number: f.number("irq")? })),
    kind("irq", "softirq_entry", None, Of::Cpus, |f| Some(What::SoftBegins { number: f.number("vec")? })),
    kind("irq", "softirq_exit", None, Of::Cpus, |f| Some(What::SoftDone { number: f.number("vec")? })),
    kind("power", "cpu_idle", Some(Of::Cpus), Of::Cpus, idle),
    kind("exceptions", "page_fault_user", None, BY, |_| Some(What::Fault)),
];

/// Those that a side itself brings about.
const BY: Of = Of::Sides(&["common_pid"]);
/// Those that befall a side.
const PID: Of = Of::Sides(&["pid"]);

const fn kind(
    system: &'static str,
    name: &'static str,
    stages: Option<Of>,
    causes: Of,
    read: fn(&Fields) -> Option<What>,
) -> Kind {
    Kind { system, name, stages, causes, read }
}

fn switch(fields: &Fields) -> Option<What> {
    Some(What::Switch {
        from: fields.task("prev_pid")?,
        from_name: fields.text("prev_comm")?,
        state: fields.number("prev_state")?,
        to: fields.task("next_pid")?,
        to_name: fields.text("next_comm")?,
        to_priority: fields.task("next_prio")?,
    })
}

fn idle(fields: &Fields) -> Option<What> {
    // PWR_EVENT_EXIT, -1 as 32 bits, is the leaving of whatever state it was (kernel include/trace/events/power.h).
    const LEFT: i64 = 0xffff_ffff;
    Some(match fields.number("state")? {
        LEFT => What::Wakes,
        state => What::Idles { state },
    })
}

fn taken(name: &str) -> Option<What> {
    Some(What::InterruptTaken { name: name.to_owned() })
}

fn done(name: &str) -> Option<What> {
    Some(What::InterruptDone { name: name.to_owned() })
}

/// The fields of one record.
#[derive(Debug)]
pub struct Fields<'record> {
    format: &'record Format,
    record: &'record [u8],
}

impl Fields<'_> {
    fn number(&self, name: &str) -> Option<i64> {
        self.format.number(self.record, name)
    }
    fn task(&self, name: &str) -> Option<i32> {
        self.number(name)?.try_into().ok()
    }
    fn cpu(&self, name: &str) -> Option<u32> {
        self.number(name)?.try_into().ok()
    }
    fn text(&self, name: &str) -> Option<String> {
        self.format.text(self.record, name)
    }
}

/// The kinds a tracer asked for, by the numbers this kernel gives them.
#[derive(Debug, Default)]
pub struct Decoder {
    kinds: Vec<(&'static Kind, Format)>,
}

impl Decoder {
    /// Adds a kind with the text of its `format` file.
    pub fn add(&mut self, kind: &'static Kind, format: &str) -> Option<()> {
        self.kinds.push((kind, Format::parse(format)?));
        Some(())
    }

    /// The event in `record`, seen on `cpu` at `time`; none for events of other kinds.
    pub fn event(&self, cpu: u32, time: u64, record: &[u8]) -> Option<Event> {
        // The number of its kind comes first in every event (`common_type`).
        let id = u16::from_le_bytes(record.get(..2)?.try_into().ok()?);
        let (kind, format) = self.kinds.iter().find(|(_, format)| format.id == id)?;
        let fields = Fields { format, record };
        Some(Event {
            at: time.cast_signed(),
            cpu,
            task: fields.task("common_pid")?,
            what: (kind.read)(&fields)?,
        })
    }
}
