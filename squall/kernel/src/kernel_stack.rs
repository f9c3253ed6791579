// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classic mode as most kernels have it: a process has a kernel stack of its
//! own and stays on it while it waits, and the hart's stack is for choosing. To
//! get from one process to another is then two switches of stacks, from the
//! one's to the hart's and from there to the other's, as in xv6 and rCore.
//!
//! The kernel's lock is passed along with the processor: who switches
//! has it, and who is switched to lets go of it.

use core::arch::naked_asm;
use core::mem::offset_of;

use squall_scheduler::{load_what_a_call_keeps, store_what_a_call_keeps};

use crate::hart::Hart;
use crate::kernel::{Held, Kernel, find};
use crate::page_table::physical;
use crate::space::Space;
use crate::trap::enter;

/// Words that [`switch`] leaves on a stack.
const LEFT: usize = 14;

/// Words at the end of a stack that nobody may ever have written to.
const UNUSED: usize = 16;

/// Leaves this stack, noting in `leave` where, and goes on where `to`
/// was left: what a function call keeps.
#[unsafe(naked)]
unsafe extern "C" fn switch(leave: *mut usize, to: usize) {
    naked_asm!(
        "addi sp, sp, -112",
        store_what_a_call_keeps!(),
        "sd sp, 0(a0)",
        "mv sp, a1",
        load_what_a_call_keeps!(),
        "addi sp, sp, 112",
        "ret",
    )
}

/// Gives a space the stack that ends at `top`; the first switch to it enters the space.
pub(crate) fn lay_out(space: &mut Space, top: usize) {
    let left = (top as *mut usize).wrapping_sub(LEFT);
    // SAFETY: the top of a stack that nobody runs on.
    unsafe {
        left.write(first as *const () as usize);
        left.add(1).write((&raw const *space).addr());
    }
    (space.kernel_stack, space.left) = (top, left as usize);
}

/// The first function on a kernel stack; its space is in `s0`.
#[unsafe(naked)]
unsafe extern "C" fn first() {
    naked_asm!(
        "mv a0, s0",
        "call {unlock}",
        "j {enter}",
        unlock = sym unlock,
        enter = sym enter,
    )
}

/// Lets go of the lock that came along with the switch.
extern "C" fn unlock(space: *mut Space) -> *mut Space {
    drop(Held::passed_on());
    space
}

/// From the hart's stack: lets `space` go on where it is in the kernel until it gives up the
/// processor, and then the next; returns one without a kernel stack.
#[inline(never)]
pub(crate) fn run(mut kernel: Held, hart: &mut Hart, mut space: &'static mut Space) -> *mut Space {
    loop {
        hart.stack = space.kernel_stack;
        // SAFETY: the space stands where it was left, or as `lay_out` made it.
        unsafe { switch(&raw mut hart.left, space.left) };
        hart.stack = Hart::stack_of(hart.id);
        (kernel, space) = find(kernel, hart);
        if space.kernel_stack == 0 {
            return space;
        }
    }
}

/// From a space's own stack: goes on at once, or leaves the processor to others until it is chosen
/// again, on whatever hart.
#[inline(always)]
pub(crate) fn stay_or_leave(
    mut kernel: Held,
    hart: &mut Hart,
    space: &mut Space,
    expired: bool,
) -> *mut Space {
    if hart.space.is_null() || !kernel.goes_on(hart, space, expired) {
        // SAFETY: the hart's own stack was left by `run`. If the space has ended its stack may be given to
        // others, but only once this hart has left it, since it has the lock until then.
        unsafe { switch(&raw mut space.left, hart.left) };
    }
    space
}

impl Kernel {
    /// Takes back the stack of a space that has ended.
    pub(crate) fn take_back_stack(&mut self, space: &Space) {
        if space.kernel_stack == 0 {
            return;
        }
        let end = (space.kernel_stack - crate::frames::FRAME) as *const usize;
        // SAFETY: the stack's own frame, which nobody runs on.
        let unused = (0..UNUSED).all(|word| unsafe { end.add(word).read() } == 0);
        assert!(unused, "the kernel stack of space {} is too short", space.number);
        self.frames.give_back(physical(end));
    }
}

/// That the lock's holder has nothing to pass along but the lock.
const _: () = assert!(size_of::<Held>() == 0 && offset_of!(Hart, stack) == 0);
