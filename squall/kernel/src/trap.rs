// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way into the kernel and out of it.
//!
//! There are two of each. A space that yielded in the shared scheduler has left nothing in
//! registers that it needs, so nothing is saved, and when it goes on it finds only what its own
//! memory holds, and in registers what the kernel left there: zero, or words of the kernel's that
//! it can read and do nothing with (addresses of spaces and rings, page tables' roots, which levels
//! are ready, how many changes there were). Everything else, an interrupt, a fault or a call, keeps
//! all 31 registers and the program counter in the [`Space`]; one call, `YieldInEntry`, keeps them
//! and then takes the short way.
//!
//! `sscratch` has the hart whenever the kernel may be entered: outside it, and inside, where only a
//! fault of the kernel itself does.

use core::arch::naked_asm;
use core::mem::offset_of;

use squall_scheduler::call::{Call, FAULTED, MEMORY};

use crate::console::say;
use crate::hart::{Flush, Hart};
use crate::kernel::{KERNEL, Kernel, Lock, choose, give_way, give_way_locked};
use crate::kernel_stack;
use crate::ready::{Place, Queue};
use crate::register::{read, write};
use crate::space::{Space, space_at};
use crate::{kernel::leave_space, page_table};

const FROM_USER: usize = 8;
const INTERRUPT: usize = 1 << 63;
const SUPERVISOR_BEFORE: usize = 1 << 8;

/// Where a space's registers lie, the program counter first.
const PC: usize = offset_of!(Space, registers);

/// Keeps all registers of the space in `t0`, whose `tp` is in
/// `sscratch` and whose `t0` was spilled.
macro_rules! save {
    () => {
        ".irp n, 1,2,3,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
         sd x\\n, {pc} + 8 * \\n(t0)
         .endr
         csrr t1, sepc
         sd t1, {pc}(t0)
         csrrw t1, sscratch, tp
         sd t1, {pc} + 32(t0)
         ld t1, {spill}(tp)
         sd t1, {pc} + 40(t0)"
    };
}

/// The space in `t4`, whose queue is in `t5`, goes after the last in it; the first, then in `a0`,
/// is taken out. Where there is but one it is both.
macro_rules! turn {
    () => {
        "ld a5, {last}(t5)
         ld a0, {first}(t5)
         sd t4, {next}(a5)
         ld a4, {next}(a0)
         sd a5, {previous}(t4)
         sd t4, {last}(t5)
         sd a4, {first}(t5)
         sd zero, {previous}(a0)"
    };
}

/// Where `stvec` points.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn entry() {
    naked_asm!(
        ".balign 4",
        "csrrw tp, sscratch, tp",
        "sd t0, {spill}(tp)",
        "csrr t0, scause",
        "addi t0, t0, -{from_user}",
        "bnez t0, .Lnot_a_call",
        "bnez a7, .Lcall", // `GiveWay` is call 0.
        "csrw sscratch, tp",
        // The shared scheduler yielded: nothing to save. Each value is loaded into a register that
        // was not used yet, so that as many as possible forget what the space had in them. The lock
        // is taken.
        "ld t1, {lock}(tp)",
        "amoswap.w.aq t2, tp, (t1)",
        "ld t4, {space}(tp)",
        "ld t5, {queue}(t4)",
        "ld a1, {ready}(t1)",
        "ld s0, {before}(t5)",
        "ld s1, {bit}(t5)",
        "and a2, s0, a1",
        // Zero if just one level is ready of those that go first, and it is the space's own. What is read without the lock, if it was
        // taken, decides nothing.
        "xor s7, a2, s1",
        "or s8, s7, t2",
        "bnez s8, .Lchoose",
        turn!(),
        "amoswap.w.rl a6, zero, (t1)",
        // The other page table, as in `enter`.
        "ld s2, {satp}(a0)",
        "ld s3, {changes}(tp)",
        "ld s4, {flush}(tp)",
        "addi a3, s3, 1",
        "csrrw s6, satp, s2",
        "sd a0, {space}(tp)",
        "sd a3, {changes}(tp)",
        "ld s5, {pc}(a0)",
        "or s9, s4, s5",
        "bnez s9, .Lnot_so_short",
        ".Lresume:",
        "ld t6, {resume_point}(a0)",
        "csrw sepc, t6",
        // The image loads ra, sp and t3, and sets a0; a7 is a call's number, t0 zero or a space's address.
        "li gp, 0", "li s10, 0", "li s11, 0", "li tp, 0",
        "sret",
        // It was interrupted or made a call when it was here last, or translations have to be forgotten.
        ".Lnot_so_short:",
        "mv t0, s5",
        "beqz s4, {load_registers}",
        "addi s4, s4, -{once}",
        "bnez s4, .Lforget",
        "sd zero, {flush}(tp)", // Before the flush: what is asked for from here on stays asked for.
        ".Lforget:",
        "ld s4, {flushes}(tp)",
        "fence rw, rw",
        "sfence.vma",
        "addi s4, s4, 1",
        "sd s4, {flushes}(tp)",
        "beqz t0, .Lresume",
        "j {load_registers}",
        // Another hart has the lock, or this one has it and not just an equal is ready.
        ".Lchoose:",
        "ld sp, {stack}(tp)",
        "mv a0, tp",
        "beqz t2, .Lchosen_locked",
        "call {give_way}",
        "j .Lenter_chosen",
        ".Lchosen_locked:",
        "call {give_way_locked}",
        ".Lenter_chosen:",
        "ld t0, {space}(tp)",
        "bne a0, t0, {enter}",
        "j {enter_same}",
        // A call, or what came of one. To yield by the same short way takes what was kept first, and the same of another at the end;
        // `enter` forgets what is in registers, if the other yielded with `GiveWay`.
        ".Lcall:",
        "addi t0, a7, -{yield_in_entry}",
        "bnez t0, .Lkeep_and_trap",
        "ld t0, {space}(tp)",
        save!(),
        "mv t4, t0",
        "ld t1, {lock}(tp)",
        "amoswap.w.aq t2, tp, (t1)",
        "bnez t2, .Ltrap",
        // `GiveWay` does not look: `kill` sees to it that it goes on where it faults.
        "lbu t3, {doomed}(t4)",
        "bnez t3, .Lunlock_and_trap",
        "ld t5, {queue}(t4)",
        "ld a1, {ready}(t1)",
        "ld s0, {before}(t5)",
        "ld s1, {bit}(t5)",
        "and a2, s0, a1",
        "bne a2, s1, .Lunlock_and_trap",
        "ld t3, {pc}(t4)",
        "addi t3, t3, 4",
        "sd t3, {pc}(t4)",
        "sd zero, {pc} + 80(t4)",
        turn!(),
        "amoswap.w.rl zero, zero, (t1)",
        "j {enter}",
        ".Lunlock_and_trap:",
        "amoswap.w.rl zero, zero, (t1)",
        "j .Ltrap",
        // Everything else.
        ".Lnot_a_call:",
        "csrr t0, sstatus",
        "andi t0, t0, {supervisor}",
        "bnez t0, .Lof_the_kernel",
        ".Lkeep_and_trap:",
        "ld t0, {space}(tp)",
        save!(),
        ".Ltrap:",
        "ld sp, {stack}(tp)",
        "mv a0, tp",
        "call {trap}",
        "ld t0, {space}(tp)",
        "bne a0, t0, {enter}",
        "j {enter_same}",
        // A fault of the kernel itself.
        ".Lof_the_kernel:",
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
        doomed = const offset_of!(Space, doomed),
        yield_in_entry = const Call::YieldInEntry as usize,
        lock = const offset_of!(Hart, lock),
        changes = const offset_of!(Hart, space_changes),
        flush = const offset_of!(Hart, flush),
        // The lock's word comes first.
        ready = const offset_of!(Lock, kernel) + offset_of!(Kernel, ready),
        queue = const offset_of!(Space, place) + offset_of!(Place, queue),
        pc = const PC,
        flushes = const offset_of!(Hart, flushes),
        once = const Flush::Once as usize,
        resume_point = const offset_of!(Space, resume_point),
        satp = const offset_of!(Space, satp),
        before = const offset_of!(Queue, before),
        bit = const offset_of!(Queue, bit),
        first = const offset_of!(Queue, first),
        last = const offset_of!(Queue, last),
        next = const offset_of!(Place, next),
        previous = const offset_of!(Place, previous),
        give_way = sym give_way,
        give_way_locked = sym give_way_locked,
        load_registers = sym load_registers,
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
        "sd zero, {flush}(tp)", // As in `entry`.
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
        "ld t0, {pc}(a0)",
        "bnez t0, {load_registers}",
        "ld t0, {resume_point}(a0)",
        "csrw sepc, t0",
        // What is in registers is the kernel's, or another space's; ra, sp, t3 and a0 the image overwrites first.
        ".irp register, t0,t1,t2,t4,t5,t6,a1,a2,a3,a4,a5,a6,a7,s0,s1,s2,s3,s4,s5,s6,s7,s8,s9,s10,s11,tp,gp",
        "li \\register, 0",
        ".endr",
        "sret",
        pc = const PC,
        resume_point = const offset_of!(Space, resume_point),
        load_registers = sym load_registers,
    )
}

/// Goes on with a space that was interrupted or made a call, whose program counter is in `t0`.
#[unsafe(naked)]
unsafe extern "C" fn load_registers(space: *mut Space) -> ! {
    naked_asm!(
        "sd zero, {pc}(a0)",
        "csrw sepc, t0",
        // The one with the address last.
        ".irp n, 1,2,3,4,5,6,7,8,9,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,10",
        "ld x\\n, {pc} + 8 * \\n(a0)",
        ".endr",
        "sret",
        pc = const PC,
    )
}

/// Every trap but `GiveWay`. The space to go on with.
extern "C" fn trap(hart: &mut Hart) -> *mut Space {
    let cause = read!("scause");
    let mut kernel = KERNEL.take();
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
    if space.kernel_stack != 0 {
        return kernel_stack::stay_or_leave(kernel, hart, space, expired);
    }
    choose(kernel, hart, expired)
}

impl crate::kernel::Kernel {
    /// A page fault that copies a page, or the end of the space.
    fn fault(&mut self, hart: &mut Hart, space: &mut Space, cause: usize, address: usize) {
        const FETCH: usize = 12;
        const LOAD: usize = 13;
        const STORE: usize = 15;
        const NO_MEMORY: &str = "there is no memory left to copy a page";
        let needed = match cause {
            FETCH => page_table::EXECUTE,
            LOAD => page_table::READ,
            STORE => page_table::WRITE,
            _ => 0,
        } | page_table::USER;
        self.frames.payer = space.purse;
        let copied =
            if cause == STORE { space.table.copy_on_write(address, &mut self.frames) } else { Ok(false) };
        let reason = match copied {
            Ok(true) => return self.translations_changed(),
            Err(page_table::NoMemory) => NO_MEMORY,
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
        self.end(space, FAULTED - if reason == NO_MEMORY { MEMORY } else { cause });
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
    // Into programs: user mode, interrupts on; no floating-point registers, and the kernel reaches no
    // user page by its address.
    write!("sstatus", 1 << 5);
}

/// What the entry relies on: it tests both words for zero.
const _: () = assert!(Call::GiveWay as usize == 0 && Flush::Never as usize == 0);
