// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a process finds in its registers what another had in them.

use core::arch::naked_asm;

use squall_scheduler::call::{Call, KILLED, TURN_BY_TURN};
use squall_scheduler::pool::Part;
use squall_scheduler::{load_what_a_call_keeps, store_what_a_call_keeps};

use super::company::FULL;
use super::start;
use crate::kernel::{call, exit, wait};
use crate::scheduler::{image, part, take_part};

const MARKS: [usize; 2] = [0x1d1d_1d1d_1d1d, 0x2e2e_2e2e_2e2e];

pub(super) fn look_in_registers() {
    take_part(0, TURN_BY_TURN);
    let other = start(FULL, 0);
    // SAFETY: the part is this process's own, and its executor runs.
    let seen = (0..2000).any(|_| unsafe { give_way_full_of(part(), MARKS[0], MARKS[1], image().yield_now) });
    call(Call::Kill, [other, 0, 0, 0]);
    exit(if seen || wait() != Some((other, KILLED)) { 3 } else { 0 });
}

/// Hands over with all registers full, for ever.
pub(super) fn fill_registers() -> ! {
    take_part(0, TURN_BY_TURN);
    loop {
        // SAFETY: as above.
        if unsafe { give_way_full_of(part(), MARKS[1], MARKS[0], image().yield_now) } {
            exit(3);
        }
    }
}

/// Gives way with `mark` in all registers that it can be in; whether
/// `foreign` is in one of them afterwards.
#[unsafe(naked)]
unsafe extern "C" fn give_way_full_of(
    part: *mut Part,
    mark: usize,
    foreign: usize,
    yield_now: unsafe extern "C" fn(*mut Part),
) -> bool {
    naked_asm!(
        "addi sp, sp, -128",
        store_what_a_call_keeps!(),
        "sd gp, 104(sp)",
        "sd tp, 112(sp)",
        "sd a2, 120(sp)",
        "mv t1, a3",
        "mv gp, a1",
        "mv tp, a1",
        "mv t2, a1",
        "mv t4, a1",
        "mv t5, a1",
        "mv t6, a1",
        "mv a2, a1",
        "mv a3, a1",
        "mv a4, a1",
        "mv a5, a1",
        "mv a6, a1",
        "mv a7, a1",
        "mv s0, a1",
        "mv s1, a1",
        "mv s2, a1",
        "mv s3, a1",
        "mv s4, a1",
        "mv s5, a1",
        "mv s6, a1",
        "mv s7, a1",
        "mv s8, a1",
        "mv s9, a1",
        "mv s10, a1",
        "mv s11, a1",
        "jalr t1",
        "ld t0, 120(sp)",
        "beq gp, t0, 1f",
        "beq tp, t0, 1f",
        "beq t1, t0, 1f",
        "beq t2, t0, 1f",
        "beq t4, t0, 1f",
        "beq t5, t0, 1f",
        "beq t6, t0, 1f",
        "beq a1, t0, 1f",
        "beq a2, t0, 1f",
        "beq a3, t0, 1f",
        "beq a4, t0, 1f",
        "beq a5, t0, 1f",
        "beq a6, t0, 1f",
        "beq a7, t0, 1f",
        "beq s0, t0, 1f",
        "beq s1, t0, 1f",
        "beq s2, t0, 1f",
        "beq s3, t0, 1f",
        "beq s4, t0, 1f",
        "beq s5, t0, 1f",
        "beq s6, t0, 1f",
        "beq s7, t0, 1f",
        "beq s8, t0, 1f",
        "beq s9, t0, 1f",
        "beq s10, t0, 1f",
        "beq s11, t0, 1f",
        "li a0, 0",
        "j 2f",
        "1:",
        "li a0, 1",
        "2:",
        load_what_a_call_keeps!(),
        "ld gp, 104(sp)",
        "ld tp, 112(sp)",
        "addi sp, sp, 128",
        "ret",
    )
}
