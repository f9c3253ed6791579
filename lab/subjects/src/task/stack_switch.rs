// SPDX-License-Identifier: MIT OR Apache-2.0
//! A switch of stacks in user mode, from one task straight to the
//! next: no executor stands in between.
//!
//! On a stack that is left lie, from the top, the address to go on at and the two registers that an
//! assembly block may not name as lost, `rbx` and `rbp`. All others the compiler keeps where it
//! needs them, for the block says that they are lost (System V ABI, AMD64 supplement, 3.2). On
//! RISC-V it is the same with `s0` and `s1` (RISC-V calling conventions, 1.1), on ARM with `x19`
//! and `x29` (AAPCS64, 6.1). The modes of the floating-point units are no task's own.
//!
//! Whoever switches brings two words along, in registers. What all tasks share, and who is gone on
//! with, need then not be fetched from the stack that was just switched to: each fetch would wait
//! for the one before, and all for the switch.

use std::cell::Cell;

use corosensei::stack::Stack;

/// Where a task left off: the top of its stack.
pub(super) type Left = usize;

/// What a task does on its own stack, from the words that the first to switch to it brings. It
/// never returns: it switches away for good.
pub(super) type Life = extern "C" fn(usize, usize) -> !;

/// Whether there is a switch for this processor.
pub(super) const AVAILABLE: bool =
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"));

/// Bytes by which the tops of stacks lie apart in their pages, and of
/// how many before it starts again. Without, all tops are in one set
/// of the first cache, whose twelve ways thirty stacks exceed.
const APART: usize = 128;
const COLOURS: usize = 32;

/// Lays out `stack`, the `number`-th, so that whoever switches to it begins `life`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
pub(super) fn lay_out(stack: &impl Stack, number: usize, life: Life) -> Left {
    const WORD: usize = size_of::<usize>();
    let top = stack.base().get() - number % COLOURS * APART;
    let first = [begin as *const () as usize, life as *const () as usize];
    // Once both words are taken the stack is at its top again, aligned as it must be before a call.
    let left = top - first.len() * WORD;
    for (index, word) in first.into_iter().enumerate() {
        // SAFETY: between the stack's top, from which the colours take 4 KiB at most, and where its task
        // will be; nobody runs on it.
        unsafe { (left as *mut usize).add(index).write(word) };
    }
    left
}

/// The first instructions on a stack: calls the task's life, which [`lay_out`] left there, with the
/// words that were brought.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn begin() -> ! {
    core::arch::naked_asm!("pop rax", "mov rdi, rdx", "mov rsi, rcx", "call rax", "ud2")
}

/// As on x86-64.
#[cfg(target_arch = "riscv64")]
#[unsafe(naked)]
unsafe extern "C" fn begin() -> ! {
    core::arch::naked_asm!("ld t0, 8(sp)", "addi sp, sp, 16", "mv a0, a2", "mv a1, a3", "jalr t0", "unimp")
}

/// As on x86-64.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn begin() -> ! {
    core::arch::naked_asm!(
        "ldr x9, [sp, #8]",
        "add sp, sp, #16",
        "mov x0, x2",
        "mov x1, x3",
        "blr x9",
        "udf #0"
    )
}

/// Leaves this stack, noting in `leave` where, and goes on where `to` was left, bringing `words`.
/// Returns those that are brought by whoever switches back here.
///
/// # Safety
///
/// `to` was left by this function or laid out by [`lay_out`], has not been gone on with since, and
/// its stack and what its task uses are still there. All run on one thread.
#[inline(always)]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")), allow(unused))]
pub(super) unsafe fn switch(leave: &Cell<Left>, to: Left, [mut first, mut second]: [usize; 2]) -> [usize; 2] {
    // SAFETY: `to` points to the address to go on at, by the contract; there the stack is as this block
    // left it, and all other registers are named as lost. Whoever comes back here finds `rsp` as it
    // was. JUSTIFICATION: a library that switches through its executor does it twice a hand-off.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!(
            "push rbp",
            "push rbx",
            "lea rax, [rip + 2f]",
            "push rax",
            "mov [rdi], rsp",
            "mov rsp, rsi",
            "pop rax",
            "jmp rax",
            "2:",
            "pop rbx",
            "pop rbp",
            inout("rdi") leave.as_ptr() => _,
            inout("rsi") to => _,
            inout("rdx") first,
            inout("rcx") second,
            out("rax") _,
            out("r12") _,
            out("r13") _,
            out("r14") _,
            out("r15") _,
            clobber_abi("C"),
        );
    }
    // SAFETY: as on x86-64.
    // JUSTIFICATION: as there.
    #[cfg(target_arch = "riscv64")]
    unsafe {
        core::arch::asm!(
            "addi sp, sp, -32",
            "lla t0, 2f",
            "sd t0, 0(sp)",
            "sd s0, 8(sp)",
            "sd s1, 16(sp)",
            "sd sp, 0(a0)",
            "mv sp, a1",
            "ld t0, 0(sp)",
            "jr t0",
            "2:",
            "ld s0, 8(sp)",
            "ld s1, 16(sp)",
            "addi sp, sp, 32",
            inout("a0") leave.as_ptr() => _,
            inout("a1") to => _,
            inout("a2") first,
            inout("a3") second,
            out("s2") _, out("s3") _, out("s4") _, out("s5") _, out("s6") _,
            out("s7") _, out("s8") _, out("s9") _, out("s10") _, out("s11") _,
            out("fs0") _, out("fs1") _, out("fs2") _, out("fs3") _, out("fs4") _, out("fs5") _,
            out("fs6") _, out("fs7") _, out("fs8") _, out("fs9") _, out("fs10") _, out("fs11") _,
            clobber_abi("C"),
        );
    }
    // SAFETY: as on x86-64. `x18` is the platform's, and Linux has no use of it for programs; nobody
    // here writes it. JUSTIFICATION: as there.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!(
            "sub sp, sp, #32",
            "adr x9, 2f",
            "stp x9, x19, [sp]",
            "str x29, [sp, #16]",
            "mov x9, sp",
            "str x9, [x0]",
            "mov sp, x1",
            "ldr x9, [sp]",
            "br x9",
            "2:",
            "ldr x19, [sp, #8]",
            "ldr x29, [sp, #16]",
            "add sp, sp, #32",
            inout("x0") leave.as_ptr() => _,
            inout("x1") to => _,
            inout("x2") first,
            inout("x3") second,
            out("x20") _, out("x21") _, out("x22") _, out("x23") _, out("x24") _,
            out("x25") _, out("x26") _, out("x27") _, out("x28") _,
            // Of these a call keeps the lower halves, and so `clobber_abi` does not name them.
            out("v8") _, out("v9") _, out("v10") _, out("v11") _,
            out("v12") _, out("v13") _, out("v14") _, out("v15") _,
            clobber_abi("C"),
        );
    }
    [first, second]
}

/// No processor of this kind has a switch here; [`AVAILABLE`] says so before anybody asks.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
pub(super) fn lay_out(_: &impl Stack, _: usize, _: Life) -> Left {
    0
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
mod tests {
    use super::super::stack_pool;
    use super::*;

    /// Two tasks and the test itself.
    #[derive(Default)]
    struct Three {
        left: [Cell<Left>; 3],
        seen: [Cell<u64>; 2],
    }

    fn other(three: &Three, own: usize) {
        let words = [(&raw const *three).expose_provenance(), 1 - own];
        // SAFETY: the tasks give way to each other, each before it is
        // gone on with, and end with the test still there.
        let [_, brought] = unsafe { switch(&three.left[own], three.left[1 - own].get(), words) };
        assert_eq!(brought, own, "who is gone on with");
    }

    extern "C" fn life(three: usize, own: usize) -> ! {
        // SAFETY: the test's own value, which outlives its tasks.
        let three = unsafe { &*std::ptr::with_exposed_provenance::<Three>(three) };
        // More values than there are registers, some in each kind, over many switches.
        let whole: [u64; 12] =
            std::array::from_fn(|index| std::hint::black_box(100 * own as u64 + index as u64));
        let real: [f64; 12] =
            std::array::from_fn(|index| std::hint::black_box(index as f64 + own as f64 / 2.0));
        for _ in 0..1000 {
            other(three, own);
        }
        let sum = whole.iter().sum::<u64>() as f64 + real.iter().sum::<f64>();
        three.seen[own].set((sum * 2.0) as u64);
        let next = if own == 0 { three.left[1].get() } else { three.left[2].get() };
        // SAFETY: as above; the second task to end goes back to the test.
        unsafe { switch(&three.left[own], next, [0, 1]) };
        std::process::abort();
    }

    #[test]
    fn every_register_survives_a_thousand_switches_there_and_back() {
        let stacks = [(); 2].map(|()| stack_pool::stack().unwrap());
        let three = Three::default();
        for (own, stack) in stacks.iter().enumerate() {
            three.left[own].set(lay_out(stack, own + 7, life));
        }
        let words = [(&raw const three).expose_provenance(), 0];
        // SAFETY: the first task was laid out just now.
        unsafe { switch(&three.left[2], three.left[0].get(), words) };
        // 0 to 11 are 66; in halves.
        assert_eq!(three.seen.each_ref().map(Cell::get), [2 * (66 + 66), 2 * (1200 + 66 + 66 + 6)]);
        stack_pool::give_back(stacks);
    }
}
