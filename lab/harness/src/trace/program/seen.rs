// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of a watched program, as small as they can be kept: a busy one leaves millions.

use crate::trace::format::{Format, Place};

/// What is recorded, in the order of a reader's kinds: system, name, and the fields in the order in
/// which they are read.
pub const EVENTS: [(&str, &str, &[&str]); 6] = [
    ("raw_syscalls", "sys_enter", &["id", "args"]),
    ("raw_syscalls", "sys_exit", &["id", "ret"]),
    ("sched", "sched_waking", &["pid", "comm"]),
    ("sched", "sched_switch", &["prev_pid", "prev_state", "next_pid", "prev_comm", "next_comm", "next_prio"]),
    ("task", "task_newtask", &["pid", "clone_flags", "comm"]),
    ("task", "task_rename", &["newcomm"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// When, by the trace clock.
    pub at: u64,
    /// The task that ran there.
    pub task: i32,
    pub context: Context,
    pub act: Act,
}

/// For whom the CPU worked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Context {
    /// For the task that ran there.
    #[default]
    Task,
    /// It served a softirq, in whatever task ran there.
    Softirq,
    /// It served an interrupt, in whatever task ran there.
    Interrupt,
    /// Nobody saw.
    Unseen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Enters {
        call: i64,
        args: [u64; 3],
    },
    Returns {
        call: i64,
        value: i64,
    },
    Waking {
        task: i32,
    },
    Switch {
        from: i32,
        /// In which state it left: 0 where it would have gone on.
        state: u8,
        to: i32,
        /// The priority of the one that comes.
        priority: i32,
    },
    Born {
        task: i32,
        /// Whether it is a thread of the same process.
        thread: bool,
    },
}

/// Reads the records of this kernel.
#[derive(Debug)]
pub struct Reader {
    flags: Place,
    pid: Place,
    /// Whom a new name is of, where the kernel says so; else the name is the task's that ran.
    renamed: Option<Place>,
    /// Of each its number and the places of its fields.
    kinds: Vec<(u16, Vec<Place>)>,
}

/// Bits of `common_flags` (kernel include/linux/trace_events.h).
const HARD_IRQ: i64 = 1 << 3;
const SOFT_IRQ: i64 = 1 << 4;
/// A bit of `clone_flags` (clone(2)).
const CLONE_THREAD: i64 = libc::CLONE_THREAD as i64;
/// The bits of `prev_state` that are states; above them stands one for a task that goes on (kernel
/// include/trace/events/sched.h, `TASK_REPORT_MAX`).
const STATES: i64 = 0xff;

impl Reader {
    /// One for the formats of [`EVENTS`], in their order; none where a field is missing.
    pub fn new(formats: &[Format]) -> Option<Self> {
        let first = formats.first()?;
        let kind = |(format, (.., fields)): (&Format, &(_, _, &[&str]))| {
            let places = fields.iter().map(|name| format.place(name).cloned());
            Some((format.id, places.collect::<Option<_>>()?))
        };
        Some(Self {
            flags: first.place("common_flags")?.clone(),
            pid: first.place("common_pid")?.clone(),
            renamed: formats.get(5)?.place("pid").cloned(),
            kinds: formats.iter().zip(&EVENTS).map(kind).collect::<Option<_>>()?,
        })
    }

    /// The event in `record`. Of each task that it names `named` is told, with whether the name is
    /// new, and where in the record it stands.
    pub fn read(&self, at: u64, record: &[u8], named: &mut impl FnMut(i32, bool, &Place)) -> Option<Seen> {
        let id = u16::from_le_bytes(record.get(..2)?.try_into().ok()?);
        let index = self.kinds.iter().position(|(kind, _)| *kind == id)?;
        let places = &self.kinds[index].1;
        let number = |place: usize| places.get(place)?.number(record);
        let task = |place: usize| i32::try_from(number(place)?).ok();
        let mut name = |of: usize, place: usize, anew: bool| {
            if let (Some(task), Some(place)) = (task(of), places.get(place)) {
                named(task, anew, place);
            }
        };
        let flags = self.flags.number(record)?;
        let act = match index {
            0 => {
                let word = |index| places.get(1)?.word(record, index);
                // The third word of a signal's call is its number; no call that matters has more.
                Act::Enters { call: number(0)?, args: [word(0)?, word(1)?, word(2)?] }
            }
            1 => Act::Returns { call: number(0)?, value: number(1)? },
            2 => {
                name(0, 1, false);
                Act::Waking { task: task(0)? }
            }
            3 => {
                name(0, 3, false);
                name(2, 4, false);
                let state = (number(1)? & STATES) as u8;
                Act::Switch { from: task(0)?, state, to: task(2)?, priority: task(5)? }
            }
            4 => {
                // Not anew: events of two CPUs come one CPU after the
                // other, and its own renaming may have come before.
                name(0, 2, false);
                Act::Born { task: task(0)?, thread: number(1)? & CLONE_THREAD != 0 }
            }
            _ => {
                let task = self.renamed.as_ref().unwrap_or(&self.pid).number(record)?;
                named(i32::try_from(task).ok()?, true, places.first()?);
                return None;
            }
        };
        let context = match flags {
            flags if flags & HARD_IRQ != 0 => Context::Interrupt,
            flags if flags & SOFT_IRQ != 0 => Context::Softirq,
            _ => Context::Task,
        };
        Some(Seen { at, task: i32::try_from(self.pid.number(record)?).ok()?, context, act })
    }
}
