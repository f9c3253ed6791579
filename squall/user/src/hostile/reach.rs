// SPDX-License-Identifier: MIT OR Apache-2.0
//! Misdeeds of those who reach for what is not theirs: memory, code, instructions.

use core::arch::asm;
use core::ptr::with_exposed_provenance_mut;

use squall_scheduler::call::Call;
use squall_scheduler::image::{IMAGE, PART};

use super::refused;
use crate::kernel::{call, exit};
use crate::scheduler::{part, take_part, yield_now};

pub(super) fn scribble_and_give_way() {
    take_part(100, 2);
    for word in 0..500 {
        // SAFETY: the process's own part, of which nothing else here relies on anything.
        unsafe { with_exposed_provenance_mut::<usize>(PART).add(word).write_volatile(0x5a5a_5a5a_5a5a_5a5a) };
    }
    yield_now();
}

pub(super) fn point_into_the_kernel() {
    take_part(100, 0);
    for word in 1..500 {
        // SAFETY: as above.
        unsafe { with_exposed_provenance_mut::<usize>(PART).add(word).write_volatile(0xffff_ffc0_8040_0000) };
    }
    yield_now();
}

pub(super) fn lie_about_levels() {
    take_part(4, 0);
    // SAFETY: as above.
    unsafe { (*part()).ready.store(0xff, core::sync::atomic::Ordering::Relaxed) };
    yield_now();
}

pub(super) fn write_word(address: usize) {
    // SAFETY: it faults.
    unsafe { with_exposed_provenance_mut::<usize>(address).write_volatile(1) };
}

pub(super) fn read_kernel() {
    // SAFETY: it faults.
    unsafe { with_exposed_provenance_mut::<usize>(0xffff_ffc0_8040_0000).read_volatile() };
}

pub(super) fn jump_nowhere() {
    // SAFETY: it faults.
    unsafe { asm!("jr {}", in(reg) 0x6000_0000_usize) };
}

pub(super) fn run_data() {
    let data = [0x0000_8067_u32; 4];
    // SAFETY: it faults, for the stack is not executable.
    unsafe { asm!("jalr {}", in(reg) data.as_ptr(), out("ra") _) };
}

pub(super) fn privileged() {
    // SAFETY: it traps.
    unsafe { asm!("csrw satp, zero") };
}

pub(super) fn floating_point() {
    // SAFETY: it traps; the instruction is fmv.d.x fa0, zero.
    unsafe { asm!(".word 0xf2000553") };
}

pub(super) fn stack_in_kernel() {
    // SAFETY: nothing is on the stack between the moves; the kernel does not look at it.
    unsafe {
        asm!("mv s2, sp", "li sp, -4096", "li a7, {myself}", "ecall", "mv sp, s2", myself = const Call::Myself as usize,
            out("s2") _, out("a0") _, out("a7") _);
    }
}

pub(super) fn give_way_alone() {
    // SAFETY: the kernel ends the process.
    unsafe { asm!("li a7, 0", "ecall", out("a7") _) };
}

pub(super) fn overflow() {
    #[inline(never)]
    fn deeper(depth: usize) -> usize {
        let kept = core::hint::black_box([depth; 64]);
        if depth == usize::MAX { 0 } else { deeper(depth + 1) + kept[3] }
    }
    core::hint::black_box(deeper(0));
}

pub(super) fn bad_pointers() {
    const BAD: [usize; 7] =
        [0, 0xffff_ffc0_8020_0000, 1 << 39, usize::MAX - 3, usize::MAX, 0x6000_0000, IMAGE];
    for address in BAD {
        refused(Call::Count, [address, 0, 0, 0]);
        refused(Call::CommandLine, [address, 8, 0, 0]);
        if address != IMAGE {
            // The image may be read.
            refused(Call::Print, [address, 8, 0, 0]);
        }
    }
    refused(Call::Print, [PART - 4, 8, 0, 0]);
    // A child's code that cannot be written: the child is gone all the same.
    if call(Call::Fork, [1, 0, 0, 0]) == 0 {
        exit(0);
    }
    refused(Call::Wait, [0x6000_0000, 0, 0, 0]);
    refused(Call::Wait, [0; 4]);
}
