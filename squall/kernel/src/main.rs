// SPDX-License-Identifier: MIT OR Apache-2.0
//! Squall: a small kernel whose unit of scheduling is a coroutine.
//!
//! An evening's reading, in this order:
//!
//! | file | what it is about |
//! |---|---|
//! | `main.rs` | from the firmware's jump to the first process |
//! | `hart.rs`, `register.rs`, `sbi.rs`, `console.rs` | one processor, and what is under the kernel |
//! | `frames.rs`, `page_table.rs` | memory, and who sees which of it |
//! | `space.rs`, `program.rs` | an address space, from its program to its end |
//! | `ready.rs`, `kernel.rs` | who runs where; waking without a lost wake-up |
//! | `trap.rs` | the two ways into the kernel, and out |
//! | `kernel_stack.rs` | the same for processes that stay on a kernel stack, as most kernels' do |
//! | `syscall.rs`, `timer.rs` | what processes may ask for; slices and alarms |
//! | `../../scheduler` | the scheduler that the kernel and all processes share |
//! | `kernel_tasks.rs` | the same scheduler, for tasks of the kernel |
#![no_std]
#![no_main]

mod console;
mod frames;
mod hart;
mod kernel;
mod kernel_stack;
mod kernel_tasks;
mod page_table;
mod program;
mod ready;
mod register;
mod sbi;
mod scheduler_image;
mod space;
mod syscall;
mod timer;
mod trap;

use core::arch::naked_asm;
use core::mem::offset_of;
use core::sync::atomic::AtomicU32;

use hermit_dtb::Dtb;

use crate::console::say;
use crate::frames::Frames;
use crate::hart::{HARTS, Hart};
use crate::kernel::{KERNEL, choose};
use crate::page_table::{BASE, KERNEL_GIGABYTE, ROOT, mapped, physical};

/// Whether a hart came to [`start`] yet. In what the file brings,
/// since the rest of memory is cleared after it.
#[unsafe(link_section = ".data")]
static BEGUN: AtomicU32 = AtomicU32::new(0);

/// Where the firmware jumps to, on one hart, without translation:
/// `a0` is its number, `a1` the device tree.
///
/// On one hart only: but OpenSBI 1.1 says that a hart may start before it has noted where
/// (`sbi_hsm_hart_start`), and one that looks in between comes here again. It is one of the others.
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.start")]
unsafe extern "C" fn start() -> ! {
    naked_asm!(
        "lla t0, {begun}",
        "li t1, 1",
        "amoadd.w.aqrl t1, t1, (t0)",
        "bnez t1, {start_other}",
        "lla t0, bss",
        "lla t1, bss_end",
        "0: sd zero, 0(t0)",
        "addi t0, t0, 8",
        "bltu t0, t1, 0b",
        "mv s0, a0",
        "mv s1, a1",
        "lla sp, bss_end", // A few words at the end of memory that is still unused.
        "lla a0, {root}",
        "lla a1, {gigabyte}",
        "lla a2, writable",
        "call {map}",
        "mv a0, s0",
        "mv a1, s1",
        "lla a2, {first}",
        "j {translate}",
        begun = sym BEGUN,
        start_other = sym start_other,
        root = sym ROOT,
        gigabyte = sym KERNEL_GIGABYTE,
        map = sym page_table::map_all_memory,
        first = sym first,
        translate = sym translate,
    )
}

/// Where the firmware starts the other harts: `a0` is the number.
#[unsafe(naked)]
#[unsafe(link_section = ".text.boot")]
unsafe extern "C" fn start_other() -> ! {
    naked_asm!("lla a2, {other}", "j {translate}", other = sym other, translate = sym translate)
}

/// Turns translation on and calls the function at physical address `a2` on the stack of hart `a0`.
#[unsafe(naked)]
#[unsafe(link_section = ".text.boot")]
unsafe extern "C" fn translate() -> ! {
    naked_asm!(
        "lla t0, {root}",
        "srli t0, t0, 12",
        "li t1, 8 << 60",
        "or t0, t0, t1",
        "sfence.vma",
        "csrw satp, t0",
        "sfence.vma",
        "li t1, {base}",
        "lla sp, {stacks}",
        "add sp, sp, t1",
        "li t0, {stack}",
        "addi t2, a0, 1",
        "mul t0, t0, t2",
        "add sp, sp, t0",
        "add t0, a2, t1",
        "jr t0",
        root = sym ROOT,
        base = const BASE,
        stacks = sym hart::STACKS,
        stack = const hart::STACK,
    )
}

extern "C" fn first(id: usize, device_tree: usize) -> ! {
    assert!(id < HARTS, "this kernel knows {HARTS} harts, and this is number {id}");
    let hart = Hart::begin(id);
    trap::accept();
    let mut kernel = KERNEL.take();
    // SAFETY: the firmware's pointer, in the map of all memory.
    let Some(tree) = (unsafe { Dtb::from_raw(mapped(device_tree)) }) else {
        panic!("there is no device tree")
    };
    let memory =
        tree.get_property("/memory@80000000", "reg").and_then(|reg| Some((word(reg, 0)?, word(reg, 8)?)));
    let Some((start, size)) = memory else { panic!("the device tree has no memory at 0x80000000") };
    // The tree itself lies at the end of memory, and the command line in it.
    let end = (start + size).min(device_tree / frames::FRAME * frames::FRAME);
    kernel.frames = Frames::over(kernel_end(), end);
    kernel.command_line = tree.get_property("/chosen", "bootargs").unwrap_or(&[]);
    kernel.harts = 1;
    if let Some(spaces) = number(kernel.command_line, "spaces") {
        kernel.numbers = spaces.clamp(16, space::SPACES);
    }
    let bits = number(kernel.command_line, "asid-bits").unwrap_or(16).min(16);
    kernel.processors_numbers = page_table::numbers().min(1 << bits);
    if kernel.processors_numbers < kernel.numbers {
        // Not a number for each space: translations are forgotten at
        // every change instead, and all spaces have number 0.
        kernel.keep_translations(false);
    }
    for other in (0..HARTS).filter(|other| *other != id) {
        // Its first instruction is to wait for the lock.
        kernel.harts += usize::from(sbi::start(other, physical(start_other as *const u8), 0));
    }
    if kernel.spawn_first().is_err() {
        panic!("{size} bytes of memory are too few for the first process");
    }
    run(kernel, hart)
}

extern "C" fn other(id: usize) -> ! {
    let hart = Hart::begin(id);
    trap::accept();
    run(KERNEL.take(), hart)
}

/// From here on the hart is in the kernel only where a trap brings it.
fn run(kernel: kernel::Held, hart: &mut Hart) -> ! {
    let space = choose(kernel, hart, false);
    // SAFETY: `choose` found it for this hart.
    unsafe { trap::enter(space) }
}

/// What the command line says after `name:`. There are two words for the
/// kernel: `spaces:N`, that space numbers end below N, and `asid-bits:N`,
/// to see what becomes of a processor that has fewer than this one.
fn number(command_line: &[u8], name: &str) -> Option<usize> {
    let text = core::str::from_utf8(command_line).ok()?.trim_end_matches('\0');
    text.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix(':')?.parse().ok())
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?) as usize)
}

fn kernel_end() -> usize {
    unsafe extern "C" {
        static kernel_end: u8;
    }
    physical(&raw const kernel_end)
}

/// Stops the machine; the emulator ends with this status.
fn stop(status: usize) -> ! {
    const TEST_DEVICE: usize = 0x10_0000;
    const PASS: u32 = 0x5555;
    const FAIL: u32 = 0x3333;
    let word = if status == 0 { PASS } else { FAIL | (status as u32) << 16 };
    loop {
        // SAFETY: the board's device for this.
        unsafe { mapped::<u32>(TEST_DEVICE).write_volatile(word) };
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    say!("{info}");
    stop(101)
}

const _: () = assert!(offset_of!(Hart, stack) == 0);
