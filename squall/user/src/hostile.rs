// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that mean harm, one misdeed each, and what must come of it. While they run, an honest pair of spaces hands over
//! (`arm/across.rs`): its counts must come out right.

use core::arch::{asm, naked_asm};
use core::ptr::{null_mut, with_exposed_provenance_mut};

use squall_scheduler::call::{Call, Refusal, TURN_BY_TURN};
use squall_scheduler::image::{IMAGE, MAIL, PART};
use squall_scheduler::pool::Part;

use crate::arm::across;
use crate::kernel::{call, exit, grow, must, say, spawn, wait};
use crate::program;
use crate::scheduler::{image, part, take_part, yield_now};

/// What becomes of a misdeed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The kernel ends the process.
    Killed,
    /// The process is refused what it wants, sees so, and ends well.
    Refused,
    /// It never ends by itself; its parent ends it.
    Endless,
}
use Fate::{Endless, Killed, Refused};

/// The misdeeds.
const MISDEEDS: &[(&str, Fate, fn())] = &[
    ("scribbles over its part of the pool, and gives way", Killed, scribble_and_give_way),
    ("fills its part with pointers into the kernel, and yields", Killed, point_into_the_kernel),
    ("says that all its levels are ready, and yields", Killed, lie_about_levels),
    ("writes to the scheduler's code", Killed, || write_word(IMAGE)),
    ("writes to its own program", Killed, || write_word(0x10000)),
    ("writes to mail that it does not share", Killed, || write_word(MAIL + 7 * 4096)),
    ("writes to the kernel's memory", Killed, || write_word(0xffff_ffc0_8040_0000)),
    ("reads the kernel's memory", Killed, read_kernel),
    ("jumps to where nothing is", Killed, jump_nowhere),
    ("runs its data", Killed, run_data),
    ("executes an instruction of the kernel's", Killed, privileged),
    ("uses a floating-point register", Killed, floating_point),
    ("moves its stack pointer into the kernel and makes a call", Refused, stack_in_kernel),
    ("gives way without a part of the pool", Killed, give_way_alone),
    ("looks in its registers for what another process had in them", Refused, look_in_registers),
    ("overflows its stack", Killed, overflow),
    ("passes bad pointers to every call that takes one", Refused, bad_pointers),
    ("makes calls that there are none of, and calls of the first space", Refused, foreign_calls),
    ("touches spaces that are not its relatives", Refused, strangers),
    ("takes all memory", Refused, all_memory),
    ("forks until it is refused", Refused, fork_all),
    ("never yields", Endless, never_yields),
    ("yields and does nothing else", Endless, only_yields),
    ("parks for ever", Endless, parks),
    ("parks, and nobody is left to wake it", Killed, parks),
];

/// All misdeeds, one after the other, beside an honest pair; or the one of this number, from 1 on. The first space's.
pub(crate) fn run(which: usize, me: usize) -> bool {
    // Without slices a process that never yields would have its hart for good. Several harts may run by the host's clock, where a
    // slice passes while the host runs others: thousands of processes would get nothing done in shorter ones than 2 ms.
    let slice = if crate::kernel::counters().harts == 1 { 2_000 } else { 20_000 };
    must(Call::Tick, [slice, 0, 0, 0]);
    if !across::run_beside(20, 5, me, &mut None) {
        return false;
    }
    let mut clean = crate::kernel::counters();
    for (index, (what, fate, _)) in MISDEEDS.iter().enumerate() {
        if which != 0 && which != index + 1 {
            continue;
        }
        let number = spawn(program::HOSTILE, [index, 0], program::LEVEL);
        let mut ended = None;
        let honest = across::run_beside(20, 50, me, &mut ended);
        if *fate == Endless {
            must(Call::Kill, [number, 0, 0, 0]);
        }
        while let Some(child) = wait() {
            ended = Some(child);
        }
        let wanted = if *fate == Refused { 0 } else { usize::MAX };
        let now = crate::kernel::counters();
        let left = now.frames_used.abs_diff(clean.frames_used);
        if ended != Some((number, wanted)) || !honest || now.spaces != 1 || left > 1 {
            say!(
                "a process that {what}: ended with {ended:?}, not {wanted:?}; honest pair {honest}; {left} frames left"
            );
            return false;
        }
        // One more at most: spaces have ever greater numbers, and 512 of them need one more page for the tables of mail.
        clean = now;
        say!("{{\"hostile\":\"{what}\"}}");
    }
    true
}

/// The program [`program::HOSTILE`].
pub(crate) fn misbehave(index: usize) -> ! {
    if index == FULL {
        fill_registers();
    }
    if let Some((_, _, misdeed)) = MISDEEDS.get(index) {
        misdeed();
    }
    exit(0)
}

/// That a call was refused; ends the process as a failure if not.
fn refused(what: Call, arguments: [usize; 4]) {
    let answer = call(what, arguments);
    if answer >= 0 {
        say!("{what:?} {arguments:x?} was not refused: {answer}");
        exit(3);
    }
}

fn scribble_and_give_way() {
    take_part(100, 2);
    for word in 0..500 {
        // SAFETY: the process's own part, of which nothing else here relies on anything.
        unsafe { with_exposed_provenance_mut::<usize>(PART).add(word).write_volatile(0x5a5a_5a5a_5a5a_5a5a) };
    }
    yield_now();
}

fn point_into_the_kernel() {
    take_part(100, 0);
    for word in 1..500 {
        // SAFETY: as above.
        unsafe { with_exposed_provenance_mut::<usize>(PART).add(word).write_volatile(0xffff_ffc0_8040_0000) };
    }
    yield_now();
}

fn lie_about_levels() {
    take_part(4, 0);
    // SAFETY: as above.
    unsafe { (*part()).ready.store(0xff, core::sync::atomic::Ordering::Relaxed) };
    yield_now();
}

fn write_word(address: usize) {
    // SAFETY: it faults.
    unsafe { with_exposed_provenance_mut::<usize>(address).write_volatile(1) };
}

fn read_kernel() {
    // SAFETY: it faults.
    unsafe { with_exposed_provenance_mut::<usize>(0xffff_ffc0_8040_0000).read_volatile() };
}

fn jump_nowhere() {
    // SAFETY: it faults.
    unsafe { asm!("jr {}", in(reg) 0x6000_0000_usize) };
}

fn run_data() {
    let data = [0x0000_8067_u32; 4];
    // SAFETY: it faults, for the stack is not executable.
    unsafe { asm!("jalr {}", in(reg) data.as_ptr(), out("ra") _) };
}

fn privileged() {
    // SAFETY: it traps.
    unsafe { asm!("csrw satp, zero") };
}

fn floating_point() {
    // SAFETY: it traps; the instruction is fmv.d.x fa0, zero.
    unsafe { asm!(".word 0xf2000553") };
}

fn stack_in_kernel() {
    // SAFETY: nothing is on the stack between the moves; the kernel does not look at it.
    unsafe {
        asm!("mv s2, sp", "li sp, -4096", "li a7, {myself}", "ecall", "mv sp, s2", myself = const Call::Myself as usize,
            out("s2") _, out("a0") _, out("a7") _);
    }
}

fn give_way_alone() {
    // SAFETY: the kernel ends the process.
    unsafe { asm!("li a7, 0", "ecall", out("a7") _) };
}

/// In place of a misdeed's number: hands over with all registers full, for ever.
const FULL: usize = usize::MAX;

const MARKS: [usize; 2] = [0x1d1d_1d1d_1d1d, 0x2e2e_2e2e_2e2e];

fn look_in_registers() {
    take_part(0, TURN_BY_TURN);
    let other = spawn(program::HOSTILE, [FULL, 0], program::LEVEL);
    // SAFETY: the part is this process's own, and its executor runs.
    let seen = (0..2000).any(|_| unsafe { give_way_full_of(part(), MARKS[0], MARKS[1], image().yield_now) });
    call(Call::Kill, [other, 0, 0, 0]);
    exit(if seen || wait() != Some((other, usize::MAX)) { 3 } else { 0 });
}

fn fill_registers() -> ! {
    take_part(0, TURN_BY_TURN);
    loop {
        // SAFETY: as above.
        if unsafe { give_way_full_of(part(), MARKS[1], MARKS[0], image().yield_now) } {
            exit(3);
        }
    }
}

/// Gives way with `mark` in all registers that it can be in; whether `foreign` is in one of them afterwards.
#[unsafe(naked)]
unsafe extern "C" fn give_way_full_of(
    part: *mut Part,
    mark: usize,
    foreign: usize,
    yield_now: unsafe extern "C" fn(*mut Part),
) -> bool {
    naked_asm!(
        "addi sp, sp, -128",
        "sd ra, 0(sp)",
        "sd s0, 8(sp)",
        "sd s1, 16(sp)",
        "sd s2, 24(sp)",
        "sd s3, 32(sp)",
        "sd s4, 40(sp)",
        "sd s5, 48(sp)",
        "sd s6, 56(sp)",
        "sd s7, 64(sp)",
        "sd s8, 72(sp)",
        "sd s9, 80(sp)",
        "sd s10, 88(sp)",
        "sd s11, 96(sp)",
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
        "ld ra, 0(sp)",
        "ld s0, 8(sp)",
        "ld s1, 16(sp)",
        "ld s2, 24(sp)",
        "ld s3, 32(sp)",
        "ld s4, 40(sp)",
        "ld s5, 48(sp)",
        "ld s6, 56(sp)",
        "ld s7, 64(sp)",
        "ld s8, 72(sp)",
        "ld s9, 80(sp)",
        "ld s10, 88(sp)",
        "ld s11, 96(sp)",
        "ld gp, 104(sp)",
        "ld tp, 112(sp)",
        "addi sp, sp, 128",
        "ret",
    )
}

fn overflow() {
    #[inline(never)]
    fn deeper(depth: usize) -> usize {
        let kept = core::hint::black_box([depth; 64]);
        if depth == usize::MAX { 0 } else { deeper(depth + 1) + kept[3] }
    }
    core::hint::black_box(deeper(0));
}

fn bad_pointers() {
    const BAD: [usize; 6] = [0, 0xffff_ffc0_8020_0000, 1 << 39, usize::MAX - 3, 0x6000_0000, IMAGE];
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

fn foreign_calls() {
    for what in [Call::Tick, Call::KeepTranslations, Call::KernelTasks, Call::Stop] {
        refused(what, [1, 1, 1, 1]);
    }
    for number in [Call::Stop as usize + 1, 1000, usize::MAX] {
        let mut answer = number as isize;
        // SAFETY: there is no such call.
        unsafe { asm!("ecall", in("a7") number, inlateout("a0") answer) };
        if answer != Refusal::NoSuchCall as isize {
            exit(3);
        }
    }
    refused(Call::Pool, [usize::MAX / 8, 0, 0, 0]);
    refused(Call::Pool, [1 << 40, 0, 0, 0]);
    refused(Call::Pool, [4, 99, 0, 0]);
    refused(Call::Spawn, [0, 0, 0, 8]);
    refused(Call::Park, [0; 4]);
    must(Call::Pool, [4, 0, 0, 0]);
    refused(Call::Pool, [4, 0, 0, 0]);
}

fn strangers() {
    for number in [0, 5000, 65535, 65536, usize::MAX] {
        refused(Call::Kick, [number, 0, 0, 0]);
        refused(Call::Kill, [number, 0, 0, 0]);
        refused(Call::Connect, [number, 0, 0, 0]);
    }
    // The parent may be talked to, and not ended.
    refused(Call::Kill, [program::FIRST, 0, 0, 0]);
    let myself = must(Call::Myself, [0; 4]);
    refused(Call::Kill, [myself, 0, 0, 0]);
    refused(Call::Connect, [myself, 0, 0, 0]);
}

fn all_memory() {
    refused(Call::Grow, [usize::MAX, 0, 0, 0]);
    refused(Call::Grow, [1 << 40, 0, 0, 0]);
    let mut last = null_mut();
    while let Some(memory) = grow(1 << 20) {
        last = memory;
    }
    while let Some(memory) = grow(4096) {
        last = memory;
    }
    write_word(last.expose_provenance());
    refused(Call::Fork, [0; 4]);
    refused(Call::Spawn, [program::HOSTILE, 0, 0, 0]);
    refused(Call::Pool, [1 << 20, 0, 0, 0]);
}

fn fork_all() {
    let mut children: usize = 0;
    loop {
        match call(Call::Fork, [0; 4]) {
            0 => parks(),
            child if child < 0 => break,
            _ => children += 1,
        }
        if children > 100_000 {
            exit(3);
        }
    }
    // Its children are the first space's to wait for, and end here: they are numbered upwards from this one.
    let myself = must(Call::Myself, [0; 4]);
    let mut ended = 0;
    for number in (myself + 1..65536).chain(1..myself) {
        if ended == children {
            break;
        }
        ended += usize::from(call(Call::Kill, [number, 0, 0, 0]) >= 0);
    }
    while wait().is_some() {}
}

fn never_yields() {
    loop {
        core::hint::spin_loop();
    }
}

fn only_yields() {
    loop {
        call(Call::Yield, [0; 4]);
    }
}

fn parks() {
    if !take_part(1, 0) {
        // Among many forked ones: there is no memory left.
        exit(2);
    }
    loop {
        call(Call::Park, [0; 4]);
    }
}
