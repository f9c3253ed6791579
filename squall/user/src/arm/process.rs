// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classic processes that yield in turn: a trap, all registers saved, the ready queue, the other's
//! page table, all registers back.
//!
//! The one that forks the others is one of them, and takes the readings. The
//! others have two turns more than are counted, so that none ends before.
//! Each counts its own turns, and says at its end how many they were.

use squall_scheduler::call::Call;

use super::turn;
use crate::kernel::{call, counters, exit, wait};
use crate::record::{Reading, Record};

/// How they yield: as any call does, in the kernel's Rust, or by the short way in the trap's entry.
pub(crate) const BY_CALL: usize = Call::Yield as usize;
pub(crate) const IN_ENTRY: usize = Call::YieldInEntry as usize;

/// Makes the others, and takes turns with them.
pub(crate) fn run<const YIELD: usize>(subject: &'static str, tasks: usize, turns: usize) -> bool {
    let before = counters();
    for index in 1..tasks {
        match call(Call::Fork, [0; 4]) {
            0 => others_turns::<YIELD>(turns + BESIDE),
            number if number < 0 => {
                crate::kernel::say!("{{\"ceiling\":\"process\",\"fit\":{index}}}");
                // Their turns are over soon; there is nothing to be measured.
                while wait().is_some() {}
                return false;
            }
            _ => {}
        }
    }
    yield_now::<YIELD>();
    let bytes = (counters().frames_used - before.frames_used) as usize * 4096 / (tasks - 1).max(1);
    let begin = Reading::begin();
    for _ in 0..turns {
        turn::take();
        yield_now::<YIELD>();
    }
    let end = Reading::end();
    let mut taken = turn::taken();
    while let Some((_, turns)) = wait() {
        taken = taken.saturating_add(turns);
    }
    let done = taken.wrapping_sub(BESIDE * (tasks - 1));
    let record = Record { subject, tasks, turns, done, space_changes: Some(tasks * turns), bytes, moves: 0 };
    record.print(begin.until(&end));
    true
}

/// Turns that are not counted.
const BESIDE: usize = 2;

#[inline(always)]
fn yield_now<const YIELD: usize>() {
    call(if YIELD == IN_ENTRY { Call::YieldInEntry } else { Call::Yield }, [0; 4]);
}

fn others_turns<const YIELD: usize>(turns: usize) -> ! {
    yield_now::<YIELD>();
    for _ in 0..turns {
        turn::take();
        yield_now::<YIELD>();
    }
    exit(turn::taken())
}
