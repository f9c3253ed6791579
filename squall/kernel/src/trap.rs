// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way into the kernel and out of it.
//!
//! There are two of each. A space that gave way in the shared scheduler has left nothing in registers that it needs, so nothing is
//! saved, and when it goes on it finds only what its own memory holds. Everything else, an interrupt, a fault or a call, keeps
//! all 31 registers and the program counter in the [`Space`].
//!
//! `sscratch` has the hart whenever the kernel may be entered: outside it, and inside, where only a fault of the kernel itself does.

use core::arch::naked_asm;
use core::mem::offset_of;

use squall_scheduler::call::Call;

use crate::console::say;
use crate::hart::{Flush, Hart};
use crate::kernel::{KERNEL, choose, give_way};
use crate::register::{read, write};
use crate::space::{Space, State, space_at};
use crate::{kernel::leave_space, page_table};

const FROM_USER: usize = 8;
const INTERRUPT: usize = 1 << 63;
const SUPERVISOR_BEFORE: usize = 1 << 8;

/// Where `stvec` points.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn entry() {
    naked_asm!(
        ".balign 4",
        "csrrw tp, sscratch, tp",
        "sd t0, {spill}(tp)",
        "csrr t0, scause",
        "addi t0, t0, -{from_user}",
        "bnez t0, 1f",
        "bnez a7, 1f", // Call::GiveWay is 0.
        // The shared scheduler gave way: nothing to save.
        "csrw sscratch, tp",
        "ld sp, {stack}(tp)",
        "mv a0, tp",
        "call {give_way}",
        "ld t0, {space}(tp)",
        "bne a0, t0, {enter}",
        "j {enter_same}",
        // Everything else.
        "1:",
        "csrr t0, sstatus",
        "andi t0, t0, {supervisor}",
        "bnez t0, 2f",
        "ld t0, {space}(tp)",
        "sd x1, 8(t0)",
        "sd x2, 16(t0)",
        "sd x3, 24(t0)",
        "sd x6, 48(t0)",
        "sd x7, 56(t0)",
        "sd x8, 64(t0)",
        "sd x9, 72(t0)",
        "sd x10, 80(t0)",
        "sd x11, 88(t0)",
        "sd x12, 96(t0)",
        "sd x13, 104(t0)",
        "sd x14, 112(t0)",
        "sd x15, 120(t0)",
        "sd x16, 128(t0)",
        "sd x17, 136(t0)",
        "sd x18, 144(t0)",
        "sd x19, 152(t0)",
        "sd x20, 160(t0)",
        "sd x21, 168(t0)",
        "sd x22, 176(t0)",
        "sd x23, 184(t0)",
        "sd x24, 192(t0)",
        "sd x25, 200(t0)",
        "sd x26, 208(t0)",
        "sd x27, 216(t0)",
        "sd x28, 224(t0)",
        "sd x29, 232(t0)",
        "sd x30, 240(t0)",
        "sd x31, 248(t0)",
        "csrr t1, sepc",
        "sd t1, 0(t0)",
        "csrrw t1, sscratch, tp", // The user's tp was there.
        "sd t1, 32(t0)",
        "ld t1, {spill}(tp)", // The user's t0.
        "sd t1, 40(t0)",
        "ld sp, {stack}(tp)",
        "mv a0, tp",
        "call {trap}",
        "ld t0, {space}(tp)",
        "bne a0, t0, {enter}",
        "j {enter_same}",
        // A fault of the kernel itself.
        "2:",
        "csrr t0, sscratch",
        "csrw sscratch, tp",
        "mv tp, t0",
        "ld sp, {stack}(tp)",
        "call {fault_in_kernel}",
        spill = const offset_of!(Hart, spill),
        stack = const offset_of!(Hart, stack),
        space = const offset_of!(Hart, space),
        from_user = const FROM_USER,
        supervisor = const SUPERVISOR_BEFORE,
        give_way = sym give_way,
        trap = sym trap,
        enter = sym enter,
        enter_same = sym enter_same,
        fault_in_kernel = sym fault_in_kernel,
    )
}

/// Lets `hart`, which is also in `tp`, run `space`, which is another than before.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enter(space: *mut Space) -> ! {
    naked_asm!(
        "ld t0, {satp}(a0)",
        "ld t1, {changes}(tp)",
        "ld t2, {flush}(tp)",
        "addi t1, t1, 1",
        "csrw satp, t0",
        "sd a0, {space}(tp)", // Behind satp: see `wait_until_left`.
        "sd t1, {changes}(tp)",
        "beqz t2, {enter_same}",
        "addi t2, t2, -{once}",
        "bnez t2, 1f",
        "sd zero, {flush}(tp)", // Before the flush: what is asked for from here on stays asked for.
        "1:",
        "fence rw, rw",
        "sfence.vma",
        "ld t1, {flushes}(tp)",
        "addi t1, t1, 1",
        "sd t1, {flushes}(tp)",
        "j {enter_same}",
        space = const offset_of!(Hart, space),
        satp = const offset_of!(Space, satp),
        changes = const offset_of!(Hart, space_changes),
        flush = const offset_of!(Hart, flush),
        flushes = const offset_of!(Hart, flushes),
        once = const Flush::Once as usize,
        enter_same = sym enter_same,
    )
}

/// Goes on with `space`, whose page table is in force.
#[unsafe(naked)]
unsafe extern "C" fn enter_same(space: *mut Space) -> ! {
    naked_asm!(
        "ld t0, {resume}(a0)",
        "beqz t0, 1f",
        "csrw sepc, t0",
        "sd zero, {resume}(a0)",
        // The image loads ra, sp and s0 to s11 before it returns to the process. What else is in registers is the kernel's,
        // or another space's; t3 and a0 the image overwrites first.
        "li t0, 0", "li t1, 0", "li t2, 0", "li t4, 0", "li t5, 0", "li t6, 0",
        "li a1, 0", "li a2, 0", "li a3, 0", "li a4, 0", "li a5, 0", "li a6, 0", "li a7, 0",
        "li tp, 0", "li gp, 0",
        "sret",
        "1:",
        "ld t0, 0(a0)",
        "csrw sepc, t0",
        "ld x1, 8(a0)",
        "ld x2, 16(a0)",
        "ld x3, 24(a0)",
        "ld x4, 32(a0)",
        "ld x5, 40(a0)",
        "ld x6, 48(a0)",
        "ld x7, 56(a0)",
        "ld x8, 64(a0)",
        "ld x9, 72(a0)",
        "ld x11, 88(a0)",
        "ld x12, 96(a0)",
        "ld x13, 104(a0)",
        "ld x14, 112(a0)",
        "ld x15, 120(a0)",
        "ld x16, 128(a0)",
        "ld x17, 136(a0)",
        "ld x18, 144(a0)",
        "ld x19, 152(a0)",
        "ld x20, 160(a0)",
        "ld x21, 168(a0)",
        "ld x22, 176(a0)",
        "ld x23, 184(a0)",
        "ld x24, 192(a0)",
        "ld x25, 200(a0)",
        "ld x26, 208(a0)",
        "ld x27, 216(a0)",
        "ld x28, 224(a0)",
        "ld x29, 232(a0)",
        "ld x30, 240(a0)",
        "ld x31, 248(a0)",
        "ld x10, 80(a0)",
        "sret",
        resume = const offset_of!(Space, resume),
    )
}

/// Everything but giving way. The space to go on with.
extern "C" fn trap(hart: &mut Hart) -> *mut Space {
    let cause = read!("scause");
    let mut kernel = KERNEL.take();
    hart.traps += 1;
    let Some(space) = space_at(hart.space) else { unreachable!("only spaces are trapped") };
    let mut expired = false;
    if space.doomed {
        // Whatever it came for: `choose` ends it.
    } else if cause & INTERRUPT != 0 {
        expired = kernel.interrupts(hart, read!("sip"));
    } else if cause == FROM_USER {
        space.registers[0] += 4;
        expired = kernel.call(hart, space);
    } else {
        kernel.fault(hart, space, cause, read!("stval"));
    }
    choose(kernel, hart, expired)
}

impl crate::kernel::Kernel {
    /// A page fault that copies a page, or the end of the space.
    fn fault(&mut self, hart: &mut Hart, space: &mut Space, cause: usize, address: usize) {
        const FETCH: usize = 12;
        const LOAD: usize = 13;
        const STORE: usize = 15;
        let needed = match cause {
            FETCH => page_table::EXECUTE,
            LOAD => page_table::READ,
            STORE => page_table::WRITE,
            _ => 0,
        } | page_table::USER;
        let copied =
            if cause == STORE { space.table.copy_on_write(address, &mut self.frames) } else { Ok(false) };
        let reason = match copied {
            Ok(true) => return self.translations_changed(),
            Err(page_table::NoMemory) => "there is no memory left to copy a page",
            // Mapped since this hart last looked: it may remember that there was nothing.
            Ok(false)
                if needed != page_table::USER
                    && space.table.find(address).is_some_and(|entry| *entry & needed == needed) =>
            {
                return flush_here();
            }
            Ok(false) => match cause {
                0 | 4 | 6 => "a misaligned address",
                2 => "an illegal instruction",
                3 => "a breakpoint",
                FETCH | LOAD | STORE => "an address that is not its own",
                _ => "a fault",
            },
        };
        say!("space {} ended: {reason} ({address:#x}) at {:#x}", space.number, space.registers[0]);
        leave_space(hart);
        self.end(space, usize::MAX);
    }

    /// Entries of a page table were taken back: no hart may go on with what it remembers of them.
    pub(crate) fn translations_changed(&mut self) {
        flush_here();
        self.flush_everywhere();
    }
}

/// This hart forgets all translations.
pub(crate) fn flush_here() {
    // SAFETY: forgetting is always right.
    unsafe { core::arch::asm!("sfence.vma") };
}

extern "C" fn fault_in_kernel() -> ! {
    panic!(
        "fault {:#x} in the kernel at {:#x}, address {:#x}",
        read!("scause"),
        read!("sepc"),
        read!("stval")
    );
}

/// Lets traps of this hart come here.
pub(crate) fn accept() {
    const TIMER_AND_SOFTWARE: usize = 1 << 5 | 1 << 1;
    const COUNTERS: usize = 0b111;
    write!("stvec", entry as *const () as usize);
    write!("sie", TIMER_AND_SOFTWARE);
    // Programs may read cycle, time and instret. Linux keeps the first and the last from them.
    write!("scounteren", COUNTERS);
    // Into programs: user mode, interrupts on; no floating-point registers, and the kernel reaches no user page by its address.
    write!("sstatus", 1 << 5);
}

/// That nobody forgets it: what the entry relies on.
const _: () = assert!(Call::GiveWay as usize == 0 && Flush::Never as usize == 0 && size_of::<State>() > 0);
