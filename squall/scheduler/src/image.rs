// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the image of the scheduler is mapped, and how it is entered.
//!
//! The image is linked at [`IMAGE`] and lies there in every process, readable and executable. The
//! kernel runs the same bytes where its map of all memory has them: the code refers to itself by
//! distance only. At its head is the table [`Entries`].

use core::arch::asm;

use crate::pool::{Part, Task};
use crate::rotating::Rotating;

/// Where the image lies in every process.
pub const IMAGE: usize = 0x3000_0000;

/// Where a process has its own part of the pool.
pub const PART: usize = 0x4000_0000;

/// Where the mailbox shared with space number i lies: `MAIL + i * 4096`.
pub const MAIL: usize = 0x5000_0000;

/// The end of a process's first stack.
pub const STACK_TOP: usize = 0x7000_0000;

/// Where [`crate::call::Call::Grow`] begins to give memory.
pub const HEAP: usize = 0x1_0000_0000;

/// The image's head: the address of each function, as linked.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Entries {
    /// Where the kernel continues a process that yielded from a stackful task.
    pub resume_stackful: unsafe extern "C" fn(),
    /// Where the kernel continues a process that yielded from an executor of futures.
    pub resume_future: unsafe extern "C" fn(),
    /// The running task goes after the others of its level; returns
    /// when it is its turn again. By [`hand_over`] only.
    pub yield_now: unsafe extern "C" fn(*mut Part),
    /// The running task leaves its ring; returns when it was woken
    /// and it is its turn. By [`hand_over`] only.
    pub block: unsafe extern "C" fn(*mut Part),
    /// As `yield_now`, but without registers: says who is next. For tasks that are polled.
    pub step: unsafe extern "C" fn(*mut Part) -> *mut Task,
    /// The running task, which is polled, leaves its ring: says who is next.
    pub leave: unsafe extern "C" fn(*mut Part) -> *mut Task,
    /// Puts a task after the others of a level.
    pub insert: unsafe extern "C" fn(*mut Part, *mut Task, usize),
    /// The document's queue: adds a task of a space; says whether there was room.
    pub rotating_add: unsafe extern "C" fn(*mut Rotating, u32, u32) -> bool,
    /// The document's queue: the space and the task at the head, which stays there.
    pub rotating_peek: unsafe extern "C" fn(*mut Rotating, *mut u32, *mut u32) -> bool,
    /// The document's queue: takes out a task of a space; says how many entries were moved.
    pub rotating_delete: unsafe extern "C" fn(*mut Rotating, u32) -> usize,
    /// The same queue without its fault of deleting: takes the head out.
    pub rotating_take_head: unsafe extern "C" fn(*mut Rotating) -> bool,
}

/// Bytes below the stack pointer that [`hand_over`] uses: nobody else writes to a stack, no
/// interrupt and no signal. From the top, the address to go on at, and two registers.
pub const BELOW: usize = 32;

/// Calls one of the image's functions that hand over. They lose all registers, so that the compiler
/// keeps what is needed after this call, and no more; `s0` and `s1` it wants to keep itself and
/// does not let an assembly block name as lost. `gp` and `tp` are lost too and cannot be named
/// either: no program may keep anything there, and none does that is linked without
/// `__global_pointer$` and has no thread-local variables.
///
/// # Safety
/// `part` is initialised and the caller's own, and its running task is what calls this.
#[inline(always)]
pub unsafe fn hand_over(function: unsafe extern "C" fn(*mut Part), part: *mut Part) {
    // SAFETY: by the caller's promise; all registers but those two and the stack's are named as lost.
    unsafe {
        asm!(
            "sd s0, -16(sp)",
            "sd s1, -24(sp)",
            "jalr t1",
            "ld s0, -16(sp)",
            "ld s1, -24(sp)",
            inout("t1") function => _,
            inout("a0") part => _,
            out("s2") _, out("s3") _, out("s4") _, out("s5") _, out("s6") _,
            out("s7") _, out("s8") _, out("s9") _, out("s10") _, out("s11") _,
            clobber_abi("C"),
        );
    }
}

/// What a function call keeps, stored from where the stack pointer is
/// on, as a piece of assembly: 104 bytes.
#[macro_export]
macro_rules! store_what_a_call_keeps {
    () => {
        "sd ra, 0(sp)
         .irp n, 0,1,2,3,4,5,6,7,8,9,10,11
         sd s\\n, 8 + 8 * \\n(sp)
         .endr"
    };
}

/// Loads what [`store_what_a_call_keeps`] stored.
#[macro_export]
macro_rules! load_what_a_call_keeps {
    () => {
        "ld ra, 0(sp)
         .irp n, 0,1,2,3,4,5,6,7,8,9,10,11
         ld s\\n, 8 + 8 * \\n(sp)
         .endr"
    };
}
