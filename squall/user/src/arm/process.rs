// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classic processes that yield in turn: a trap, all registers saved, the ready queue, the other's page table, all registers back.
//!
//! The first process takes the readings. The others have two turns more than are counted, so that none ends before.

use squall_scheduler::call::Call;

use super::turn;
use crate::kernel::{call, counters, exit, wait};
use crate::record::{Reading, Record};

/// How they yield: as any call does, in the kernel's Rust, or by the short way in the trap's entry.
pub(crate) const BY_CALL: usize = Call::Yield as usize;
pub(crate) const IN_ENTRY: usize = Call::YieldInEntry as usize;

/// Makes the processes, which run once this one waits for them.
pub(crate) fn run<const YIELD: usize>(subject: &'static str, tasks: usize, turns: usize) -> bool {
    let before = counters();
    for index in 0..tasks {
        match call(Call::Fork, [0; 4]) {
            0 if index == 0 => measure::<YIELD>(subject, tasks, turns, before.frames_used),
            0 => turns_only::<YIELD>(turns + 2),
            number if number < 0 => {
                crate::kernel::say!("{{\"ceiling\":\"process\",\"fit\":{index}}}");
                // Their turns are over soon; there is nothing to be measured.
                while wait().is_some() {}
                return false;
            }
            _ => {}
        }
    }
    (0..tasks).all(|_| wait().is_some_and(|(_, code)| code == 0))
}

#[inline(always)]
fn yield_now<const YIELD: usize>() {
    call(if YIELD == IN_ENTRY { Call::YieldInEntry } else { Call::Yield }, [0; 4]);
}

fn turns_only<const YIELD: usize>(turns: usize) -> ! {
    yield_now::<YIELD>();
    for _ in 0..turns {
        turn::take();
        yield_now::<YIELD>();
    }
    exit(0)
}

fn measure<const YIELD: usize>(subject: &'static str, tasks: usize, turns: usize, frames_before: u64) -> ! {
    yield_now::<YIELD>();
    let bytes = (counters().frames_used - frames_before) as usize * 4096 / tasks;
    let begin = Reading::begin();
    for _ in 0..turns {
        turn::take();
        yield_now::<YIELD>();
    }
    let end = Reading::end();
    let done = tasks * turn::taken();
    let record = Record { subject, tasks, turns, done, space_changes: Some(tasks * turns), bytes, moves: 0 };
    record.print(&begin, &end);
    exit(0)
}
