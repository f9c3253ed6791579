// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events that tell of a wake-up, what is kept of each, and which of them a tracer asks for.
//!
//! Adding an event is adding one line in [`KINDS`] and, if it says
//! something new, a variant of [`What`].

use doorbell_results::event::{CALL_FUNCTION, Event, RESCHEDULE, What};

use super::format::Format;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Those in which a field names one of the sides.
    Sides(&'static [&'static str]),
    /// All on the traced CPUs.
    Cpus,
}

#[derive(Debug)]
pub struct EventKind {
    pub system: &'static str,
    pub name: &'static str,
    /// What is recorded for the stages of a wake, and what for the causes of slow ones.
    pub stages: Option<Of>,
    pub causes: Of,
    read: fn(&Fields) -> Option<What>,
}

/// Every kind. The one list to extend.
pub const KINDS: &[EventKind] = &[
    kind("raw_syscalls", "sys_enter", Some(BY), BY, |f| Some(What::CallEnters { number: f.number("id")? })),
    kind("raw_syscalls", "sys_exit", Some(BY), BY, |f| Some(What::CallReturns { number: f.number("id")? })),
    kind("sched", "sched_waking", Some(PID), PID, |f| Some(What::Waking { task: f.number("pid")? })),
    kind("sched", "sched_wakeup", Some(PID), PID, |f| {
        Some(What::Runnable { task: f.number("pid")?, on: f.number("target_cpu")? })
    }),
    kind("sched", "sched_switch", Some(Of::Sides(&["prev_pid", "next_pid"])), Of::Cpus, switch),
    kind("sched", "sched_migrate_task", Some(PID), PID, |f| {
        Some(What::Migrates {
            task: f.number("pid")?,
            from: f.number("orig_cpu")?,
            to: f.number("dest_cpu")?,
        })
    }),
    kind("sched", "sched_wake_idle_without_ipi", Some(Of::Cpus), Of::Cpus, |f| {
        Some(What::IdleTold { cpu: f.number("cpu")? })
    }),
    kind("ipi", "ipi_send_cpu", Some(Of::Cpus), Of::Cpus, |f| {
        Some(What::InterruptSent { to: f.number("cpu")? })
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
/// Those that happen to a side.
const PID: Of = Of::Sides(&["pid"]);

const fn kind(
    system: &'static str,
    name: &'static str,
    stages: Option<Of>,
    causes: Of,
    read: fn(&Fields) -> Option<What>,
) -> EventKind {
    EventKind { system, name, stages, causes, read }
}

fn switch(fields: &Fields) -> Option<What> {
    Some(What::Switch {
        from: fields.number("prev_pid")?,
        from_name: fields.text("prev_comm")?,
        state: fields.number("prev_state")?,
        to: fields.number("next_pid")?,
        to_name: fields.text("next_comm")?,
        to_priority: fields.number("next_prio")?,
    })
}

fn idle(fields: &Fields) -> Option<What> {
    // PWR_EVENT_EXIT, -1 as 32 bits, is the leaving of whatever state it was (kernel
    // include/trace/events/power.h).
    const LEFT: i64 = 0xffff_ffff;
    Some(match fields.number::<i64>("state")? {
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

#[derive(Debug)]
pub struct Fields<'record> {
    format: &'record Format,
    record: &'record [u8],
}

impl Fields<'_> {
    fn number<T: TryFrom<i64>>(&self, name: &str) -> Option<T> {
        self.format.place(name)?.number(self.record)?.try_into().ok()
    }
    fn text(&self, name: &str) -> Option<String> {
        self.format.place(name)?.text(self.record)
    }
}

/// The kinds a tracer asked for, by the numbers this kernel gives them.
#[derive(Debug, Default)]
pub struct Decoder {
    kinds: Vec<(&'static EventKind, Format)>,
}

impl Decoder {
    /// Adds a kind with the text of its `format` file.
    pub fn add(&mut self, kind: &'static EventKind, format: &str) -> Option<()> {
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
            task: fields.number("common_pid")?,
            what: (kind.read)(&fields)?,
        })
    }
}
