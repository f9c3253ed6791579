// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control: the queue is stepped and the next task's function is called through a pointer. What
//! is left of another arm after this one is subtracted is the way of handing over.

use core::hint::black_box;

use squall_scheduler::call::Executor;

use super::{LEVEL, turn};
use crate::kernel::counters;
use crate::record::{Reading, Record, bytes_each};
use crate::scheduler::{image, insert, part, take_part, task};

/// Runs in a space of its own.
pub(crate) fn run(tasks: usize, turns: usize) -> bool {
    let before = counters();
    if !take_part(tasks, Executor::Future as usize) {
        return false;
    }
    for index in 0..tasks {
        insert(task(index), LEVEL);
    }
    let function: fn() = black_box(turn::take);
    // SAFETY: the part is this space's own.
    let step = || unsafe { (image().step)(part()) };
    step();
    let begin = Reading::begin();
    for _ in 0..tasks * turns {
        function();
        step();
    }
    let end = Reading::end();
    let bytes = bytes_each(&before, tasks);
    Record { bytes, ..Record::of("call", tasks, turns, turn::taken()) }.print(begin.until(&end));
    true
}
