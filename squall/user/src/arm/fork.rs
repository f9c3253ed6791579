// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop that the document ran on rCore-Tutorial-v3: fork N children that end at once, then wait for all of them. And the same with
//! children that begin as a new program instead of a copy.

use squall_scheduler::call::Call;

use crate::kernel::{call, counters, exit, say, wait};
use crate::program;
use crate::record::{Reading, Record};

/// What a child begins as.
#[derive(Clone, Copy)]
pub(crate) enum Child {
    Copy,
    CopyOnWrite,
    NewProgram,
}

/// Runs in a space of its own, which is small: what is copied is its stack and its data.
pub(crate) fn run(subject: &'static str, tasks: usize, child: Child) -> bool {
    let before = counters();
    let begin = Reading::begin();
    for index in 0..tasks {
        let made = match child {
            Child::Copy => call(Call::Fork, [0; 4]),
            Child::CopyOnWrite => call(Call::Fork, [1, 0, 0, 0]),
            Child::NewProgram => call(Call::Spawn, [program::ENDS, 0, 0, program::LEVEL]),
        };
        match made {
            0 => exit(0),
            number if number < 0 => {
                say!("{{\"ceiling\":\"fork\",\"fit\":{index}}}");
                while wait().is_some() {}
                return false;
            }
            _ => {}
        }
    }
    let bytes = (counters().frames_used - before.frames_used) as usize * 4096 / tasks;
    let done = (0..tasks).filter(|_| wait().is_some_and(|(_, code)| code == 0)).count();
    let end = Reading::end();
    assert!(wait().is_none(), "a child more than was made");
    assert!(counters().frames_used == before.frames_used, "children left memory behind");
    let record = Record { subject, tasks, turns: 0, done, space_changes: None, bytes, moves: 0 };
    record.print(begin.until(&end));
    true
}
