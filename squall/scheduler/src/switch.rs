// SPDX-License-Identifier: MIT OR Apache-2.0
//! From one stack to another.
//!
//! Who hands over has told the compiler that all registers are lost (`image::hand_over`), so what
//! is needed after the hand-over is on the stack already, and no more than that. Here the address
//! to go on at is added, and the stack pointer noted.

use core::arch::naked_asm;
use core::mem::offset_of;

use squall_scheduler::call::Call;
use squall_scheduler::image::{BELOW, PART};
use squall_scheduler::pool::{GIVE_WAY, Part, Queue, Task};
use squall_scheduler::{load_what_a_call_keeps, store_what_a_call_keeps};

/// Leaves the stack of the running task (`t0`).
macro_rules! save {
    () => {
        "sd ra, -8(sp)
         sd sp, {stack_pointer}(t0)"
    };
}

/// Goes on as the task in `t3`.
macro_rules! restore {
    () => {
        "ld sp, {stack_pointer}(t3)
         ld ra, -8(sp)
         ret"
    };
}

/// The running task goes after the others of its level.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn yield_now(part: *mut Part) {
    naked_asm!(
        "ld t0, {running}(a0)",
        "ld t1, {queue}(t0)",
        "ld t3, {next}(t0)",
        "ld t2, {above}(t1)",
        "ld t4, {ready}(a0)",
        "sd t3, {current}(t1)",
        "and t2, t2, t4",
        "bnez t2, 1f",
        "sd t3, {running}(a0)",
        save!(),
        restore!(),
        // Something is more urgent than the neighbour. Most often it is only the bit `GIVE_WAY`.
        "1:",
        save!(),
        // `GIVE_WAY` is the highest bit: with that shifted out, zero is left where nothing else is
        // urgent, and zero is the number of the call to make then.
        "slli a7, t2, 1",
        "beqz a7, 2f",
        "addi sp, sp, -{below}",
        "mv s0, a0",
        "mv s1, t2",
        "call {choose}",
        "mv t3, a0",
        "mv a0, s0",
        "li a7, {give_way}",
        "bltz s1, 2f",
        "sd t3, {running}(a0)",
        restore!(),
        // The kernel goes on at `resume_stackful`, in this space or another.
        "2:",
        "sd t3, {running}(a0)",
        "ecall",
        "unimp",
        running = const offset_of!(Part, running),
        ready = const offset_of!(Part, ready),
        queue = const offset_of!(Task, queue),
        next = const offset_of!(Task, next),
        stack_pointer = const offset_of!(Task, stack_pointer),
        above = const offset_of!(Queue, above),
        current = const offset_of!(Queue, current),
        below = const BELOW,
        give_way = const Call::GiveWay as usize,
        choose = sym choose,
    )
}

/// The running task leaves its ring.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn block(part: *mut Part) {
    naked_asm!(
        "ld t0, {running}(a0)",
        save!(),
        "addi sp, sp, -{below}",
        "mv s0, a0",
        "call {vacate}",
        "mv t3, a0",
        "sd t3, {running}(s0)",
        "ld t2, {ready}(s0)",
        "bltz t2, 1f",
        restore!(),
        "1:",
        "li a7, {give_way}",
        "ecall",
        "unimp",
        running = const offset_of!(Part, running),
        ready = const offset_of!(Part, ready),
        stack_pointer = const offset_of!(Task, stack_pointer),
        below = const BELOW,
        give_way = const Call::GiveWay as usize,
        vacate = sym vacate,
    )
}

/// Where the kernel continues a process whose stackful task yielded. Its other registers are
/// another space's leavings until they are loaded here, before any code of the process runs.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn resume_stackful() {
    naked_asm!(
        "li a0, {part}",
        "ld t3, {running}(a0)",
        restore!(),
        part = const PART,
        running = const offset_of!(Part, running),
        stack_pointer = const offset_of!(Task, stack_pointer),
    )
}

/// Gives way with nothing on the stack but the executor of futures: the only frame there is, so
/// that most registers are the compiler's to save, once, outside the executor's loop.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn give_way_from_future(part: *mut Part) {
    naked_asm!(
        "addi sp, sp, -112",
        store_what_a_call_keeps!(),
        "sd sp, {executor}(a0)",
        "li a7, {give_way}",
        "ecall",
        "unimp",
        executor = const offset_of!(Part, executor) + offset_of!(Task, stack_pointer),
        give_way = const Call::GiveWay as usize,
    )
}

/// As [`resume_stackful`], for an executor of futures.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn resume_future() {
    naked_asm!(
        "li t3, {executor}",
        "ld sp, {stack_pointer}(t3)",
        load_what_a_call_keeps!(),
        "addi sp, sp, 112",
        "ret",
        executor = const PART + offset_of!(Part, executor),
        stack_pointer = const offset_of!(Task, stack_pointer),
    )
}

unsafe extern "C" fn choose(part: *mut Part) -> *mut Task {
    // SAFETY: the part is the caller's own.
    unsafe { (*part).choose() }
}

/// Takes the running task out; says who is next.
pub(crate) unsafe extern "C" fn vacate(part: *mut Part) -> *mut Task {
    // SAFETY: the part is the caller's own, and its running task is in a ring.
    unsafe {
        let running = (*part).running;
        (*part).remove(running);
        (*part).choose()
    }
}

/// What [`yield_now`] relies on.
const _: () = assert!(GIVE_WAY == 1 << 63 && Call::GiveWay as usize == 0);
