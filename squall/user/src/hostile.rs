// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that mean harm, one misdeed each, and what must come of it. While they run, an honest pair of spaces hands over
//! (`arm/across.rs`): its counts must come out right.

use core::arch::{asm, naked_asm};
use core::ptr::{null_mut, with_exposed_provenance_mut};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use squall_scheduler::call::{Call, FAULTED, KILLED, Refusal, TURN_BY_TURN};
use squall_scheduler::image::{IMAGE, MAIL, PART};
use squall_scheduler::mailbox::ALARM;
use squall_scheduler::pool::Part;

use crate::arm::across;
use crate::kernel::{call, counters, exit, grow, must, say, spawn, time, wait};
use crate::program;
use crate::scheduler::{Mail, connect, from, image, knock, knocks_of, part, take_mail, take_part, yield_now};

/// What becomes of a misdeed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The kernel ends the process, for a trap of this cause.
    Killed(usize),
    /// The process is refused what it wants, sees so, and ends well.
    Refused,
    /// It never ends by itself; its parent ends it.
    Endless,
    /// The same, beside a process that copies pages all the time and wants as little to end.
    EndlessBesideCopier,
    /// It sleeps, and so do all others, among them one that waits for its parent's word. The parent is told, and ends it.
    AllSleep,
}
use Fate::{AllSleep, Endless, EndlessBesideCopier, Killed, Refused};

/// Causes of traps (RISC-V privileged specification, 4.1.8).
const ILLEGAL: usize = 2;
const FETCH: usize = 12;
const LOAD: usize = 13;
const STORE: usize = 15;

/// The misdeeds.
const MISDEEDS: &[(&str, Fate, fn())] = &[
    ("scribbles over its part of the pool, and gives way", Killed(LOAD), scribble_and_give_way),
    ("fills its part with pointers into the kernel, and yields", Killed(LOAD), point_into_the_kernel),
    ("says that all its levels are ready, and yields", Killed(LOAD), lie_about_levels),
    ("writes to the scheduler's code", Killed(STORE), || write_word(IMAGE)),
    ("writes to its own program", Killed(STORE), || write_word(0x10000)),
    ("writes to mail that it does not share", Killed(STORE), || write_word(MAIL + 7 * 4096)),
    ("writes to the kernel's memory", Killed(STORE), || write_word(0xffff_ffc0_8040_0000)),
    ("reads the kernel's memory", Killed(LOAD), read_kernel),
    ("jumps to where nothing is", Killed(FETCH), jump_nowhere),
    ("runs its data", Killed(FETCH), run_data),
    ("executes an instruction of the kernel's", Killed(ILLEGAL), privileged),
    ("uses a floating-point register", Killed(ILLEGAL), floating_point),
    ("moves its stack pointer into the kernel and makes a call", Refused, stack_in_kernel),
    (GIVES_WAY_ALONE, Killed(FETCH), give_way_alone),
    ("looks in its registers for what another process had in them", Refused, look_in_registers),
    ("overflows its stack", Killed(STORE), overflow),
    ("passes bad pointers to every call that takes one", Refused, bad_pointers),
    ("makes calls that there are none of, and calls of the first space", Refused, foreign_calls),
    ("touches spaces that are not its relatives", Refused, strangers),
    ("prints a megabyte at once", Refused, print_much),
    ("sets alarms for the end of time, and ends", Refused, alarms_at_the_end_of_time),
    ("scribbles over the mail of an honest child that sleeps and wakes", Refused, scribble_over_mail),
    ("takes all memory", Refused, all_memory),
    ("takes all memory that it gets, and asks on", EndlessBesideCopier, ask_on),
    ("forks until it is refused", Refused, fork_all),
    ("never yields", Endless, never_yields),
    ("yields and does nothing else", Endless, || yield_for_ever(Call::Yield)),
    ("yields by the short way and does nothing else", Endless, || yield_for_ever(Call::YieldInEntry)),
    ("parks for ever", Endless, parks),
    ("parks, and nobody is left to wake it", AllSleep, parks),
];

const GIVES_WAY_ALONE: &str = "gives way without a part of the pool";

/// In place of a misdeed's number: what honest processes do, or both kinds for an experiment.
const FULL: usize = 1000;
const COPIER: usize = 1001;
const WAITS_FOR_ITS_PARENT: usize = 1002;
const WAKES_BY_ALARM: usize = 1003;
const GIVES_WAY_EARLY: usize = 1004;
const NEVER_GIVES_WAY: usize = 1005;
const LEAVES_A_MARK: usize = 1006;
const LOOKS_FOR_THE_MARK: usize = 1007;
const YIELDS: usize = 1008;

/// All misdeeds, one after the other, beside an honest pair; or the one of this number, from 1 on. The first space's.
pub(crate) fn run(which: usize, me: usize) -> bool {
    // Without slices a process that never yields would have its hart for good. Several harts may run by the host's clock, where a
    // slice passes while the host runs others: thousands of processes would get nothing done in shorter ones than 2 ms.
    let slice = if counters().harts == 1 { SLICE } else { 10 * SLICE };
    must(Call::Tick, [slice, 0, 0, 0]);
    if !across::run_beside(20, 5, me, &mut None) {
        return false;
    }
    let mut clean = counters();
    for (index, (what, fate, _)) in MISDEEDS.iter().enumerate() {
        if which != 0 && which != index + 1 {
            continue;
        }
        let number = start(index, 0);
        let company = match fate {
            EndlessBesideCopier => Some(start(COPIER, 0)),
            AllSleep => Some(start(WAITS_FOR_ITS_PARENT, 0)),
            _ => None,
        };
        let mut ended = None;
        let mut honest = across::run_beside(20, 50, me, &mut ended);
        if *fate == AllSleep {
            honest &= call(Call::Wait, [0; 4]) == Refusal::AllSleep as isize;
        }
        let wanted = match fate {
            Killed(cause) => FAULTED - cause,
            Refused => 0,
            Endless | EndlessBesideCopier | AllSleep => {
                must(Call::Kill, [number, 0, 0, 0]);
                KILLED
            }
        };
        if let Some(company) = company {
            // Refused if it has ended already.
            honest &= match fate {
                AllSleep => {
                    connect(company);
                    knock(company, me, 0);
                    true
                }
                _ => call(Call::Kill, [company, 0, 0, 0]) >= 0,
            };
        }
        while let Some((child, code)) = wait() {
            match company {
                Some(company) if company == child => honest &= *fate != AllSleep || code == 0,
                // A copier's own child.
                Some(_) if child != number => {}
                _ => ended = Some((child, code)),
            }
        }
        let now = counters();
        let left = now.frames_used.abs_diff(clean.frames_used);
        if ended != Some((number, wanted)) || !honest || now.spaces != 1 || left > 1 {
            say!(
                "a process that {what}: ended with {ended:x?}, not {wanted:x?}; honest others {honest}; {left} frames left"
            );
            return false;
        }
        // One more at most: spaces have ever greater numbers, and 512 of them need one more page for the tables of mail.
        clean = now;
        say!("{{\"hostile\":\"{what}\"}}");
    }
    which != 0 || give_way_on_kernel_stacks()
}

/// Timebase ticks of a slice.
const SLICE: usize = 2_000;

/// A process of this file's.
fn start(what: usize, word: usize) -> usize {
    spawn(program::HOSTILE, [what, word], program::LEVEL)
}

/// Processes with kernel stacks, which have no executor, give way: at once, or after they have yielded; among others that yield.
fn give_way_on_kernel_stacks() -> bool {
    let Some(index) = MISDEEDS.iter().position(|(what, _, _)| *what == GIVES_WAY_ALONE) else { return false };
    must(Call::KernelStacks, [1, 0, 0, 0]);
    let alone = [(); 2].map(|()| [start(YIELDS, 10), start(YIELDS, 0), start(index, 0)]);
    let went_well = (0..6).all(|_| {
        wait().is_some_and(|(number, code)| {
            let honest = alone.iter().any(|numbers| numbers[1] == number);
            code == if honest { 0 } else { FAULTED - FETCH }
        })
    });
    must(Call::KernelStacks, [0; 4]);
    say!("{{\"hostile\":\"{GIVES_WAY_ALONE}, on a kernel stack\"}}");
    went_well
}

/// One process gives way at nine tenths of each slice, another never does. What each had of the hart, in timebase ticks.
pub(crate) fn slices() {
    must(Call::Tick, [SLICE, 0, 0, 0]);
    let early = start(GIVES_WAY_EARLY, 0);
    start(NEVER_GIVES_WAY, 0);
    let mut had = [0; 2];
    while let Some((number, ticks)) = wait() {
        had[usize::from(number != early)] = ticks;
    }
    say!("{{\"slices\":{had:?}}}");
}

/// Ticks in which this process had its hart, until both have had enough: two readings of the clock in a row lie closer together than
/// any other process's turn is long.
fn run_for_long(gives_way: bool) -> usize {
    const NEXT: u64 = 20;
    take_part(0, TURN_BY_TURN);
    let (mut last, mut had) = (time(), 0);
    let (end, mut turn) = (last + 1000 * SLICE as u64, last);
    while last < end {
        let now = time();
        if now - last < NEXT {
            had += now - last;
        } else {
            turn = now;
        }
        last = now;
        if gives_way && now - turn > SLICE as u64 / 10 * 9 {
            yield_now();
        }
    }
    had as usize
}

/// Whether a space with a number that was used before is told nothing of who had it: it takes as many spaces as there are numbers.
pub(crate) fn numbers(me: usize) -> bool {
    // The number after the first space's has none before it that a child could have.
    across::run_beside(2, 1, me, &mut None);
    let first = start(WAITS_FOR_ITS_PARENT, 0);
    let friend = start(LEAVES_A_MARK, first);
    connect(friend);
    if knocks_of(friend, me).is_none() {
        return false;
    }
    must(Call::Kill, [first, 0, 0, 0]);
    while wait().is_some_and(|(number, _)| number + 1 != first) {
        if call(Call::Fork, [1, 0, 0, 0]) == 0 {
            exit(0);
        }
    }
    let again = start(LOOKS_FOR_THE_MARK, friend);
    connect(again);
    knock(friend, me, 0);
    if knocks_of(friend, me).is_none() {
        return false;
    }
    knock(again, me, 0);
    let unmarked = wait() == Some((again, 0));
    must(Call::Kill, [friend, 0, 0, 0]);
    wait();
    say!("{{\"numbers\":{}}}", again == first && unmarked);
    again == first && unmarked
}

/// Where the mark is left in a page of mail.
const MARK: usize = 3;

/// The program [`program::HOSTILE`].
pub(crate) fn misbehave(index: usize, word: usize, me: usize, parent: usize) -> ! {
    match index {
        FULL => fill_registers(),
        COPIER => copy_for_ever(),
        WAITS_FOR_ITS_PARENT => {
            take_part(0, 0);
            connect(parent);
            exit(usize::from(knocks_of(parent, me).is_none()));
        }
        WAKES_BY_ALARM => wake_by_alarm(word, me),
        GIVES_WAY_EARLY => exit(run_for_long(true)),
        NEVER_GIVES_WAY => exit(run_for_long(false)),
        LEAVES_A_MARK => {
            take_part(0, 0);
            connect(word).scratch[MARK].store(1, Relaxed);
            connect(parent);
            knock(parent, me, 0);
            if knocks_of(parent, me).is_some() {
                // Another has the number now.
                connect(word);
                knock(parent, me, 0);
            }
            exit(usize::from(knocks_of(parent, me).is_none()));
        }
        YIELDS => {
            for _ in 0..if word == 0 { 100 } else { word } {
                call(Call::Yield, [0; 4]);
            }
            if word != 0 {
                give_way_alone();
            }
            exit(0);
        }
        LOOKS_FOR_THE_MARK => {
            take_part(0, 0);
            connect(parent);
            exit(if knocks_of(parent, me).is_some() {
                connect(word).scratch[MARK].load(Relaxed) as usize
            } else {
                2
            });
        }
        _ => {}
    }
    if let Some((_, _, misdeed)) = MISDEEDS.get(index) {
        misdeed();
    }
    exit(0)
}

/// Forks on write and writes, for ever: each page is copied by a fault. Ends only if it finds what it did not write.
fn copy_for_ever() {
    const PAGES: usize = 16;
    let Some(memory) = grow(PAGES * 4096).map(<*mut u8>::cast::<usize>) else { exit(2) };
    for round in 0.. {
        if call(Call::Fork, [1, 0, 0, 0]) == 0 {
            // It has the pages, too, until the last is written.
            pass(4 * SLICE);
            exit(0);
        }
        for page in 0..PAGES {
            // SAFETY: memory that was asked for.
            unsafe {
                let place = memory.add(page * 512);
                if place.read_volatile() != round {
                    exit(3);
                }
                place.write_volatile(round + 1);
            }
            // So long that its slice ends among the pages, and another process makes a call before the next.
            pass(SLICE / 8);
        }
        while wait().is_some() {}
    }
}

/// Does nothing for so many timebase ticks.
fn pass(ticks: usize) {
    let begin = time();
    while time() - begin < ticks as u64 {}
}

/// Wakes by its alarm, time and again, whatever is in its mail from `other`.
fn wake_by_alarm(other: usize, me: usize) -> ! {
    take_part(0, 0);
    connect(other);
    let mail = Mail { me, others: [other, 0], count: 1 };
    for _ in 0..20 {
        must(Call::Alarm, [500, 0, 0, 0]);
        while take_mail() & ALARM == 0 {
            from(other, me).collect();
            mail.sleep();
        }
    }
    exit(0)
}

fn scribble_over_mail() {
    let me = must(Call::Myself, [0; 4]);
    let child = start(WAKES_BY_ALARM, me);
    let mail: *const AtomicU64 = (&raw const *connect(child)).cast();
    let mut word = 1_u64;
    for _ in 0..20_000 {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        // SAFETY: within the page, of words that are atomic for both.
        unsafe { (*mail.add(word as usize % 32)).store(word, Relaxed) };
        if word.is_multiple_of(64) {
            call(Call::Yield, [0; 4]);
        }
    }
    exit(if wait() == Some((child, 0)) { 0 } else { 3 })
}

fn print_much() {
    const MEGABYTE: usize = 1 << 20;
    let Some(memory) = grow(MEGABYTE) else { exit(2) };
    // SAFETY: memory that was asked for.
    unsafe {
        memory.write_bytes(b' ', MEGABYTE);
        memory.add(4095).write(b'\n');
    }
    exit(if must(Call::Print, [memory.expose_provenance(), MEGABYTE, 0, 0]) == 4096 { 0 } else { 3 })
}

fn alarms_at_the_end_of_time() {
    for _ in 0..3 {
        must(Call::Alarm, [usize::MAX, 0, 0, 0]);
    }
}

fn ask_on() {
    while grow(1 << 20).is_some() {}
    loop {
        grow(4096);
    }
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

const MARKS: [usize; 2] = [0x1d1d_1d1d_1d1d, 0x2e2e_2e2e_2e2e];

fn look_in_registers() {
    take_part(0, TURN_BY_TURN);
    let other = start(FULL, 0);
    // SAFETY: the part is this process's own, and its executor runs.
    let seen = (0..2000).any(|_| unsafe { give_way_full_of(part(), MARKS[0], MARKS[1], image().yield_now) });
    call(Call::Kill, [other, 0, 0, 0]);
    exit(if seen || wait() != Some((other, KILLED)) { 3 } else { 0 });
}

/// Hands over with all registers full, for ever.
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

fn yield_for_ever(way: Call) {
    loop {
        call(way, [0; 4]);
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
