// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks with stacks of their own.

use core::ops::Range;

use crate::kernel::grow;
use crate::scheduler::{block, insert, task};

/// Bytes of a task's stack. The kernel puts nothing on it, so it holds what the task's own calls need: fourteen registers while it
/// does not run, and a few small frames. There is no guard page behind it.
const STACK: usize = 1024;

/// What the image restores when a task runs for the first time: `ra`, `s0` and eleven more.
const REGISTERS: usize = 14;

/// Stacks for the tasks of these numbers, made ready at `level` with `body` as what they do; false if there is no memory.
///
/// `body` gets the number of the task. When it returns, the task is over.
pub(crate) fn start(tasks: Range<usize>, level: usize, body: extern "C" fn(usize)) -> bool {
    let Some(mut top) = grow(tasks.len() * STACK) else { return false };
    for index in tasks {
        top = top.wrapping_add(STACK);
        start_on(index, top, level, body);
    }
    true
}

/// Task number `index` begins on the stack that ends at `top`.
pub(crate) fn start_on(index: usize, top: *mut u8, level: usize, body: extern "C" fn(usize)) {
    let registers = top.cast::<usize>().wrapping_sub(REGISTERS);
    // SAFETY: the top of a stack that is this task's alone.
    unsafe {
        registers.write(begin as *const () as usize);
        registers.add(1).write(index);
        registers.add(2).write(body as *const () as usize);
        (*task(index)).stack_pointer = registers.expose_provenance();
    }
    insert(task(index), level);
}

/// The first function on a stack: `s0` has the task's number and `s1` its body, as restored.
#[unsafe(naked)]
unsafe extern "C" fn begin() {
    core::arch::naked_asm!("mv a0, s0", "jalr s1", "call {end}", end = sym end)
}

extern "C" fn end() {
    block();
    unreachable!("nobody wakes a task that ended");
}
