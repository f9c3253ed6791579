// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rust's futures, in one address space: polled once for each turn, waking themselves.

use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use squall_scheduler::call::Executor;

use super::{LEVEL, turn};
use crate::future::{room, run as run_all, start, yield_now};
use crate::kernel::counters;
use crate::record::{Reading, Record, bytes_each};
use crate::scheduler::take_part;

static TASKS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Runs in a space of its own.
pub(crate) fn run(tasks: usize, turns: usize) -> bool {
    TASKS.store(tasks, Relaxed);
    let before = counters();
    if !take_part(0, Executor::Future as usize) {
        return false;
    }
    let Some(first) = room(tasks) else { return false };
    for index in 0..tasks {
        start(first.wrapping_add(index), LEVEL, body(index, turns));
    }
    BYTES.store(bytes_each(&before, tasks), Relaxed);
    run_all(first);
    true
}

/// The first task takes the readings, as in the arm `stackful`.
async fn body(index: usize, turns: usize) {
    yield_now().await;
    let begin = (index == 0).then(Reading::begin);
    for _ in 0..turns {
        turn::take();
        yield_now().await;
    }
    if let Some(begin) = begin {
        let end = Reading::end();
        let (tasks, bytes) = (TASKS.load(Relaxed), BYTES.load(Relaxed));
        Record { bytes, ..Record::of("future", tasks, turns, turn::taken()) }.print(begin.until(&end));
    }
}

/// Futures made, run once and gone: what a task's life costs.
pub(crate) fn lives(tasks: usize) -> bool {
    if !take_part(0, Executor::Future as usize) {
        return false;
    }
    let Some(first) = room(tasks) else { return false };
    let before = counters();
    let begin = Reading::begin();
    for index in 0..tasks {
        start(first.wrapping_add(index), LEVEL, async { turn::take() });
    }
    let done = run_all(first);
    let end = Reading::end();
    let bytes = bytes_each(&before, tasks);
    Record { bytes, ..Record::of("life-future", tasks, 0, done) }.print(begin.until(&end));
    true
}
