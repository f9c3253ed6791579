// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an arm has measured, as one line of JSON on the console.

use core::fmt::Write;

use squall_scheduler::call::Counters;

use crate::kernel::{Line, counters, cycles, exit, instructions, say, time};

/// All clocks and counts at one moment.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    counters: Counters,
    time: u64,
    cycles: u64,
    instructions: u64,
}

impl Reading {
    /// Before what is measured: the instructions are read last.
    #[inline(always)]
    pub(crate) fn begin() -> Self {
        let counters = counters();
        let (time, cycles) = (time(), cycles());
        Self { counters, time, cycles, instructions: instructions() }
    }

    /// After it: the instructions are read first.
    #[inline(always)]
    pub(crate) fn end() -> Self {
        let instructions = instructions();
        let (time, cycles) = (time(), cycles());
        Self { counters: counters(), time, cycles, instructions }
    }

    /// What was counted from here to `end`.
    pub(crate) fn until(&self, end: &Self) -> Counted {
        let (before, after) = (&self.counters, &end.counters);
        [
            end.instructions - self.instructions,
            end.time - self.time,
            end.cycles - self.cycles,
            after.timer_interrupts - before.timer_interrupts,
            after.space_changes - before.space_changes,
            after.flushes - before.flushes,
            after.frames - after.frames_used,
        ]
    }
}

/// What was counted between two readings, and the frames that were
/// free after them; a word for each of [`COUNTED`].
pub(crate) type Counted = [u64; COUNTED.len()];

const COUNTED: [&str; 7] =
    ["instructions", "time", "cycles", "timer_interrupts", "space_changes", "flushes", "frames_free"];
pub(crate) const INSTRUCTIONS: usize = 0;
const SPACE_CHANGES: usize = 4;
const FLUSHES: usize = 5;

/// What an arm did, and what it must have done.
pub(crate) struct Record {
    pub(crate) subject: &'static str,
    pub(crate) tasks: usize,
    /// Hand-offs of each task; 0 where a task is made, runs once and is reaped.
    pub(crate) turns: usize,
    /// Hand-offs, or lives.
    pub(crate) done: usize,
    /// Changes of address space that there must have been; none where that is not the arm's to say.
    pub(crate) space_changes: Option<usize>,
    /// Bytes that a task takes.
    pub(crate) bytes: usize,
    /// Entries of the document's queue that were moved.
    pub(crate) moves: usize,
}

impl Record {
    /// What was done in one space, in memory that was there.
    pub(crate) fn of(subject: &'static str, tasks: usize, turns: usize, done: usize) -> Self {
        Self { subject, tasks, turns, done, space_changes: Some(0), bytes: 0, moves: 0 }
    }

    /// Prints it; ends the program if what was done is not what was to be done.
    pub(crate) fn print(&self, counted: Counted) {
        let (changes, flushes) = (counted[SPACE_CHANGES], counted[FLUSHES]);
        let wanted = self.tasks * self.turns.max(1);
        if self.done != wanted || self.space_changes.is_some_and(|wanted| wanted as u64 != changes) {
            say!(
                "{} failed: {} of {wanted} done, {changes} changes of address space where there should be {:?}",
                self.subject,
                self.done,
                self.space_changes
            );
            exit(1);
        }
        let mut line = Line::new();
        // Whoever changes address spaces is another arm where each change forgets the translations.
        let suffix = if flushes > 0 && flushes >= changes { "-flush" } else { "" };
        let _ = write!(line, "{{\"subject\":\"{}{suffix}\",\"tasks\":{}", self.subject, self.tasks);
        let _ = write!(line, ",\"turns\":{},\"done\":{}", self.turns, self.done);
        for (name, value) in COUNTED.iter().zip(counted) {
            let _ = write!(line, ",\"{name}\":{value}");
        }
        let _ = writeln!(line, ",\"bytes\":{},\"moves\":{}}}", self.bytes, self.moves);
        line.print();
    }
}

/// Bytes of memory that `tasks` tasks took, each, since `before`.
pub(crate) fn bytes_each(before: &Counters, tasks: usize) -> usize {
    let frames = counters().frames_used - before.frames_used;
    frames as usize * 4096 / tasks
}
