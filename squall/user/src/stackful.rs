// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks with stacks of their own.

use core::ops::Range;

use crate::kernel::grow;
use crate::scheduler::{block, insert, task};

/// Bytes of a task's stack. The kernel puts nothing on it, so it holds what the task's own calls
/// need: a few small frames. There is no guard page.
const STACK: usize = 1024;

/// Stacks for the tasks of these numbers, made ready at `level` with
/// `body` as what they do; false if there is no memory.
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
    let words = top.cast::<usize>();
    // SAFETY: the top of a stack that is this task's alone.
    unsafe {
        words.sub(1).write(begin as *const () as usize);
        words.sub(2).write(index);
        words.sub(3).write(body as *const () as usize);
        (*task(index)).stack_pointer = words.expose_provenance();
    }
    insert(task(index), level);
}

/// The first function on a stack, below which the task's number and its body were left.
#[unsafe(naked)]
unsafe extern "C" fn begin() {
    core::arch::naked_asm!(
        "ld a0, -16(sp)",
        "ld t0, -24(sp)",
        "jalr t0",
        "call {end}",
        end = sym end,
    )
}

extern "C" fn end() {
    block();
    unreachable!("nobody wakes a task that ended");
}
