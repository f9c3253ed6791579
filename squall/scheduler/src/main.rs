// SPDX-License-Identifier: MIT OR Apache-2.0
//! The image of the shared scheduler: everything that may happen on
//! the way from one task to the next.
//!
//! `switch.rs` is the way between stacks, this file the one between tasks that are polled.
#![no_std]
#![no_main]

mod switch;

use core::sync::atomic::Ordering::Relaxed;

use squall_scheduler::image::Entries;
use squall_scheduler::pool::{GIVE_WAY, Part, Task};
use squall_scheduler::rotating::Rotating;

#[used]
#[unsafe(link_section = ".entries")]
#[unsafe(no_mangle)]
static ENTRIES: Entries = Entries {
    resume_stackful: switch::resume_stackful,
    resume_future: switch::resume_future,
    yield_now: switch::yield_now,
    block: switch::block,
    step,
    leave,
    insert,
    rotating_add,
    rotating_peek,
    rotating_delete,
    rotating_take_head,
};

/// Takes one step along the ring; says who is next.
unsafe extern "C" fn step(part: *mut Part) -> *mut Task {
    // SAFETY: the part is the caller's own, and its running task is in a ring.
    unsafe {
        let running = (*part).running;
        let queue = (*running).queue;
        let next = (*running).next;
        (*queue).current = next;
        let urgent = (*part).ready.load(Relaxed) & (*queue).above;
        if urgent == 0 {
            (*part).running = next;
            return next;
        }
        turn_to_the_urgent(part, urgent, next)
    }
}

/// Takes the running task out of its ring; says who is next.
unsafe extern "C" fn leave(part: *mut Part) -> *mut Task {
    // SAFETY: the part is the caller's own, and its running task is in a ring.
    unsafe {
        let next = switch::vacate(part);
        turn_to_the_urgent(part, (*part).ready.load(Relaxed) & GIVE_WAY, next)
    }
}

#[inline(always)]
unsafe fn turn_to_the_urgent(part: *mut Part, urgent: u64, next: *mut Task) -> *mut Task {
    // SAFETY: the part is the caller's own.
    unsafe {
        (*part).running = if urgent & !GIVE_WAY == 0 { next } else { (*part).choose() };
        if urgent & GIVE_WAY != 0 {
            switch::give_way_from_future(part);
        }
        (*part).running
    }
}

unsafe extern "C" fn insert(part: *mut Part, task: *mut Task, level: usize) {
    // SAFETY: by the caller's promise.
    unsafe { (*part).insert(task, level) }
}

unsafe extern "C" fn rotating_add(ring: *mut Rotating, space: u32, task: u32) -> bool {
    // SAFETY: the ring is the caller's.
    unsafe { (*ring).add(space, task) }
}

unsafe extern "C" fn rotating_peek(ring: *mut Rotating, space: *mut u32, task: *mut u32) -> bool {
    // SAFETY: all three are the caller's.
    unsafe {
        let Some(head) = (*ring).peek() else { return false };
        (*space, *task) = head;
        true
    }
}

unsafe extern "C" fn rotating_delete(ring: *mut Rotating, task: u32) -> usize {
    // SAFETY: the ring is the caller's.
    unsafe { (*ring).delete(task) }
}

unsafe extern "C" fn rotating_take_head(ring: *mut Rotating) -> bool {
    // SAFETY: the ring is the caller's.
    unsafe { (*ring).take_head() }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // There is nobody to tell: an instruction that faults lets the kernel see it.
    loop {
        // SAFETY: it does nothing but trap.
        unsafe { core::arch::asm!("unimp") }
    }
}
