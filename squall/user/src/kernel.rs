// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel, as a process sees it.

use core::arch::asm;
use core::fmt::{self, Write};

use squall_scheduler::call::{Call, Counters};

/// A system call with up to four arguments; its answer, negative if it was refused.
pub(crate) fn call(call: Call, arguments: [usize; 4]) -> isize {
    let mut answer = arguments[0] as isize;
    // SAFETY: the kernel keeps all registers but a0; what it writes to memory is what the call is for.
    unsafe {
        asm!("ecall", in("a7") call as usize, inlateout("a0") answer, in("a1") arguments[1], in("a2") arguments[2],
            in("a3") arguments[3])
    }
    answer
}

/// A call that cannot be refused where it is made.
pub(crate) fn must(what: Call, arguments: [usize; 4]) -> usize {
    let answer = call(what, arguments);
    assert!(answer >= 0, "{what:?} was refused: {answer}");
    answer as usize
}

pub(crate) fn exit(code: usize) -> ! {
    call(Call::Exit, [code, 0, 0, 0]);
    unreachable!("the space has ended")
}

pub(crate) fn spawn(program: usize, words: [usize; 2], level: usize) -> usize {
    must(Call::Spawn, [program, words[0], words[1], level])
}

/// Waits for a child; its number and exit code.
pub(crate) fn wait() -> Option<(usize, usize)> {
    let mut code = 0_usize;
    let number = call(Call::Wait, [(&raw mut code).expose_provenance(), 0, 0, 0]);
    (number >= 0).then_some((number as usize, code))
}

/// More memory, zeroed; none if there is none.
pub(crate) fn grow(bytes: usize) -> Option<*mut u8> {
    let address = call(Call::Grow, [bytes, 0, 0, 0]);
    (address >= 0).then(|| core::ptr::with_exposed_provenance_mut(address as usize))
}

pub(crate) fn counters() -> Counters {
    let mut counters = Counters::default();
    must(Call::Count, [(&raw mut counters).expose_provenance(), 0, 0, 0]);
    counters
}

/// Retired instructions.
#[inline(always)]
pub(crate) fn instructions() -> u64 {
    let count;
    // SAFETY: reads a counter.
    unsafe { asm!("rdinstret {}", out(reg) count) };
    count
}

/// Timebase ticks.
#[inline(always)]
pub(crate) fn time() -> u64 {
    let time;
    // SAFETY: reads a counter.
    unsafe { asm!("rdtime {}", out(reg) time) };
    time
}

/// Does nothing for so many timebase ticks.
pub(crate) fn pass(ticks: usize) {
    let begin = time();
    while time() - begin < ticks as u64 {}
}

/// Cycles, as the emulator counts them.
#[inline(always)]
pub(crate) fn cycles() -> u64 {
    let count;
    // SAFETY: reads a counter.
    unsafe { asm!("rdcycle {}", out(reg) count) };
    count
}

/// A line for the console, put together before it is written, so that
/// lines of several spaces do not mix.
pub(crate) struct Line {
    text: [u8; 512],
    length: usize,
}

impl Line {
    pub(crate) const fn new() -> Self {
        Self { text: [0; 512], length: 0 }
    }

    pub(crate) fn print(&self) {
        must(Call::Print, [(&raw const self.text).expose_provenance(), self.length, 0, 0]);
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.text.get_mut(self.length..self.length + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

macro_rules! say {
    ($($part:tt)*) => {{
        let mut line = $crate::kernel::Line::new();
        let _ = core::fmt::Write::write_fmt(&mut line, format_args!("{}\n", format_args!($($part)*)));
        line.print();
    }};
}

pub(crate) use say;

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    say!("panic {info}");
    exit(101)
}
