// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks with stacks, in one address space.
//!
//! The first task takes the readings: once all tasks have begun, and when it has control again
//! after its last turn. In between each task handed over exactly as often as it has turns.

use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use squall_scheduler::call::Executor;

use super::{LEVEL, turn};
use crate::kernel::counters;
use crate::record::{Reading, Record, bytes_each};
use crate::scheduler::{take_part, yield_now};
use crate::stackful::{start, start_on};

static TASKS: AtomicUsize = AtomicUsize::new(0);
static TURNS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// The first task's stack: it has readings on it, and prints them.
const ROOMY: usize = 8 << 10;

/// Runs in a space of its own.
pub(crate) fn run<const KEPT: usize>(tasks: usize, turns: usize) -> bool {
    TASKS.store(tasks, Relaxed);
    TURNS.store(turns, Relaxed);
    let before = counters();
    if !take_part(tasks, Executor::Stackful as usize) {
        return false;
    }
    let Some(stack) = crate::kernel::grow(ROOMY) else { return false };
    start_on(0, stack.wrapping_add(ROOMY), LEVEL, measure::<KEPT>);
    if !start(1..tasks, LEVEL, turns_only::<KEPT>) {
        return false;
    }
    BYTES.store(bytes_each(&before, tasks), Relaxed);
    yield_now();
    true
}

extern "C" fn turns_only<const KEPT: usize>(_: usize) {
    yield_now();
    turn::take_all::<KEPT>(TURNS.load(Relaxed), yield_now);
}

extern "C" fn measure<const KEPT: usize>(_: usize) {
    let (tasks, turns) = (TASKS.load(Relaxed), TURNS.load(Relaxed));
    yield_now();
    let begin = Reading::begin();
    turn::take_all::<KEPT>(turns, yield_now);
    let end = Reading::end();
    let bytes = BYTES.load(Relaxed);
    let subject = if KEPT == 0 { "stackful" } else { "stackful-keeping-12" };
    Record { bytes, ..Record::of(subject, tasks, turns, turn::taken()) }.print(begin.until(&end));
}
