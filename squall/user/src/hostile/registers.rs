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
        // All but zero, the stack's and the call's own.
        ".irp register, gp, tp, t2, t4, t5, t6, a2, a3, a4, a5, a6, a7, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11",
        "mv \\register, a1",
        ".endr",
        "jalr t1",
        "ld t0, 120(sp)",
        ".irp register, gp, tp, t1, t2, t4, t5, t6, a1, a2, a3, a4, a5, a6, a7, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11",
        "beq \\register, t0, 1f",
        ".endr",
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
