// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hart: what the kernel keeps for each processor. Its address is
//! in `tp` in the kernel and in `sscratch` outside.

use core::arch::asm;
use core::ptr;

use crate::kernel::{KERNEL, Lock};
use crate::space::Space;

/// Harts that the kernel can run on.
pub(crate) const HARTS: usize = 8;

/// Bytes of a hart's stack. Kernel code never waits on it: a space that waits is a space in a list.
pub(crate) const STACK: usize = 32 << 10;

/// One processor.
#[repr(C)]
pub(crate) struct Hart {
    /// Where the stack begins that the kernel is entered on: the
    /// hart's, or that of the space which runs.
    pub(crate) stack: usize,
    /// The space that it runs; null while it is idle.
    pub(crate) space: *mut Space,
    /// A register's place while the trap's entry needs one.
    pub(crate) spill: usize,
    /// What to do about translations when another space is entered.
    pub(crate) flush: Flush,
    /// Changes of address space.
    pub(crate) space_changes: u64,
    pub(crate) flushes: u64,
    /// The kernel's lock, for the trap's entry to have its address at hand.
    pub(crate) lock: *const Lock,
    /// Where its own stack was left while a space's is used.
    pub(crate) left: usize,
    pub(crate) id: usize,
    /// When its slice ends, in timebase ticks.
    pub(crate) slice_end: u64,
    /// What `space_changes` is while the space runs whose slice that is.
    pub(crate) slice_changes: u64,
    /// When its timer will interrupt.
    pub(crate) armed: u64,
    /// How hard it is to get it to run something else: [`IDLE`], one more than the level of what it
    /// runs, or [`TOLD`]. Written under the kernel's lock, at the moment of the decision;
    /// `space` follows when the page table does.
    pub(crate) busy: usize,
}

/// In [`Hart::busy`]: it waits for something to do.
pub(crate) const IDLE: usize = 0;

/// In [`Hart::busy`]: it is about to choose anew.
pub(crate) const TOLD: usize = usize::MAX;

/// What to do about translations when another space is entered.
#[repr(usize)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Nothing: each space has a number of its own.
    Never = 0,
    /// Forget all, every time.
    Always = 1,
    /// Forget all the next time, since a number is used again.
    Once = 2,
}

#[repr(align(16))]
pub(crate) struct Stack(#[allow(dead_code)] [u8; STACK]);

pub(crate) static mut STACKS: [Stack; HARTS] = [const { Stack([0; STACK]) }; HARTS];

/// All harts; each is its own to write, but for what is said of a field.
static mut ALL: [Hart; HARTS] = [const {
    Hart {
        stack: 0,
        space: ptr::null_mut(),
        spill: 0,
        flush: Flush::Never,
        space_changes: 0,
        flushes: 0,
        lock: &raw const KERNEL,
        left: 0,
        id: 0,
        slice_end: u64::MAX,
        slice_changes: 0,
        armed: 0,
        busy: TOLD,
    }
}; HARTS];

/// Hart number `id`, below [`HARTS`].
pub(crate) fn at(id: usize) -> *mut Hart {
    (&raw mut ALL).cast::<Hart>().wrapping_add(id)
}

/// All harts that there may be, with their numbers.
pub(crate) fn all() -> impl Iterator<Item = (usize, *mut Hart)> {
    (0..HARTS).map(|id| (id, at(id)))
}

impl Hart {
    /// Makes this processor known as hart `id`.
    pub(crate) fn begin(id: usize) -> &'static mut Self {
        // SAFETY: each hart takes its own, once.
        let hart = unsafe { &mut *at(id) };
        hart.id = id;
        hart.stack = Self::stack_of(id);
        // SAFETY: nothing in Rust uses `tp`.
        unsafe { asm!("mv tp, {0}", "csrw sscratch, {0}", in(reg) &raw mut *hart) };
        hart
    }

    /// Where the stack of hart `id` begins.
    pub(crate) fn stack_of(id: usize) -> usize {
        (&raw const STACKS).addr() + (id + 1) * STACK
    }
}
