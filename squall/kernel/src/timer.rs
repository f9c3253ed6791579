// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time: slices, after which a space must let others of its level run, and alarms.

use crate::hart::{Hart, IDLE};
use crate::kernel::Kernel;
use crate::register::{read, write};
use crate::sbi;
use crate::space::{Space, space_at};

const TIMER: usize = 1 << 5;
const SOFTWARE: usize = 1 << 1;

/// The timer's regular interrupt.
#[derive(Clone, Copy)]
pub(crate) struct Tick {
    /// Timebase ticks between two; none for none.
    pub(crate) interval: Option<u64>,
    /// Whether it comes at all times, from the time of its handling on, as the document's did; else
    /// only where a slice may have to end.
    pub(crate) always: bool,
}

impl Tick {
    /// Slices of 10 ms of the 10 MHz timebase.
    pub(crate) const SLICES: Self = Self { interval: Some(100_000), always: false };
}

/// The time, in timebase ticks.
pub(crate) fn now() -> u64 {
    read!("time") as u64
}

impl Kernel {
    /// Another space begins on `hart`.
    pub(crate) fn begin_slice(&mut self, hart: &mut Hart) {
        if !self.tick.always {
            hart.slice_end = self.tick.interval.map_or(u64::MAX, |interval| now() + interval);
            // It is entered next, which counts.
            hart.slice_changes = hart.space_changes + 1;
        }
    }

    /// Lets the timer come when `hart` next has something to do.
    pub(crate) fn arm_timer(&mut self, hart: &mut Hart) {
        let slice = if hart.busy == IDLE && !self.tick.always { u64::MAX } else { hart.slice_end };
        let next = slice.min(self.first_alarm());
        if next != hart.armed {
            hart.armed = next;
            sbi::set_timer(next);
        }
    }

    /// Does what pending interrupts ask for; says whether the slice has ended.
    pub(crate) fn interrupts(&mut self, hart: &mut Hart, pending: usize) -> bool {
        if pending & SOFTWARE != 0 {
            write!("sip", read!("sip") & !SOFTWARE);
        }
        if pending & TIMER == 0 {
            return false;
        }
        self.counters.timer_interrupts += 1;
        // It is pending until it is armed anew.
        hart.armed = 0;
        let time = now();
        self.ring_alarms(time);
        if time < hart.slice_end {
            return false;
        }
        hart.slice_end = self.tick.interval.map_or(u64::MAX, |interval| time + interval);
        // Giving way in the shared scheduler renews nothing. Whoever runs here by that has its own slice
        // from now on, not the rest of another's.
        let its_own = hart.slice_changes == hart.space_changes;
        hart.slice_changes = hart.space_changes;
        its_own || self.tick.always
    }

    /// `space` is told after `ticks`. A second alarm takes the place of the first.
    pub(crate) fn set_alarm(&mut self, space: &mut Space, ticks: u64) {
        self.cancel_alarm(space);
        // The latest there is means that none is set.
        space.alarm = now().saturating_add(ticks).min(u64::MAX - 1);
        let mut place = &raw mut self.first_alarm;
        // SAFETY: the list's spaces live; the lock is held.
        unsafe {
            while !(*place).is_null() && (**place).alarm <= space.alarm {
                place = &raw mut (**place).later;
            }
            space.later = *place;
            *place = space;
        }
    }

    /// It is not told.
    pub(crate) fn cancel_alarm(&mut self, space: &mut Space) {
        if space.alarm == u64::MAX {
            return;
        }
        let mut place = &raw mut self.first_alarm;
        // SAFETY: as in `set_alarm`.
        unsafe {
            while !(*place).is_null() && !core::ptr::eq(*place, space) {
                place = &raw mut (**place).later;
            }
            if !(*place).is_null() {
                *place = space.later;
            }
        }
        space.alarm = u64::MAX;
    }

    fn first_alarm(&self) -> u64 {
        space_at(self.first_alarm).map_or(u64::MAX, |space| space.alarm)
    }

    fn ring_alarms(&mut self, time: u64) {
        while let Some(space) = space_at(self.first_alarm).filter(|space| space.alarm <= time) {
            self.first_alarm = space.later;
            space.alarm = u64::MAX;
            self.tell_alarm(space);
        }
    }
}
