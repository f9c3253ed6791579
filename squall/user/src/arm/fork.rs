// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop that the document ran on rCore-Tutorial-v3: fork N children that end at once, then wait
//! for all of them. And the same with children that begin as a new program instead of a copy.

use squall_scheduler::call::Call;

use crate::kernel::{call, counters, exit, say, wait};
use crate::program;
use crate::record::{Counted, Reading, Record};

/// What a child begins as.
#[derive(Clone, Copy)]
pub(crate) enum Child {
    Copy,
    CopyOnWrite,
    NewProgram,
}

/// Runs in a space of its own, which is small: what is copied is its stack and its data. Twice, and
/// the second time is counted: its memory is then what others had before, whatever ran earlier, for
/// frames that nobody had yet take some instructions more.
pub(crate) fn run(subject: &'static str, tasks: usize, child: Child) -> bool {
    let measured = lives(tasks, child).and_then(|_| lives(tasks, child));
    let Some((done, bytes, counted)) = measured else { return false };
    Record { space_changes: None, bytes, ..Record::of(subject, tasks, 0, done) }.print(counted);
    true
}

/// Makes so many children, which end, and waits for them: how many
/// ended well, the bytes that each took, and the counts.
fn lives(tasks: usize, child: Child) -> Option<(usize, usize, Counted)> {
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
                return None;
            }
            _ => {}
        }
    }
    let bytes = (counters().frames_used - before.frames_used) as usize * 4096 / tasks;
    let done = (0..tasks).filter(|_| wait().is_some_and(|(_, code)| code == 0)).count();
    let end = Reading::end();
    assert!(wait().is_none(), "a child more than was made");
    assert!(counters().frames_used == before.frames_used, "children left memory behind");
    Some((done, bytes, begin.until(&end)))
}
