// SPDX-License-Identifier: MIT OR Apache-2.0
//! The system calls: number in `a7`, arguments from `a0`, answer in `a0`.

/// What a process may ask for.
#[repr(usize)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// From the shared scheduler only: let another space run. No register is kept but those that
    /// the image keeps, `gp` and `tp` among those that are lost; see `image::hand_over`.
    GiveWay = 0,
    /// Classic: go after the other processes.
    Yield,
    /// (address, length): to the console, 4 KiB at most; how many bytes.
    Print,
    /// (code): the space ends. A code beyond [`GREATEST_CODE`] would
    /// be the kernel's to give, and becomes that.
    Exit,
    /// (program, first word, second word, level): a new space from the same program; its number.
    Spawn,
    /// (1 for copy-on-write, 0 for a copy): a copy of this process; its number, and 0 in the copy.
    Fork,
    /// (where to write the exit code, or 0): waits for a child to end; its number, or an error if
    /// there is none. The first space is also told when all sleep ([`Refusal::AllSleep`]).
    Wait,
    /// (number): ends a child.
    Kill,
    /// (bytes): more memory, zeroed; its address. Given piece by piece: between two the caller can
    /// be interrupted, and killed. If memory runs out on the way, what was given stays the
    /// caller's, at the address that the next call answers.
    Grow,
    /// (number of tasks, [`Executor`]): gives this space its part of
    /// the pool, with room for so many tasks.
    Pool,
    /// Sleeps until mail comes ([`crate::pool::ATTENTION`] is the token).
    Park,
    /// (number): tells a space that there is mail. Refused unless both have connected.
    Kick,
    /// (number): shares a page of mail with a child, a sibling or the
    /// parent; its address. The other can reach the page, be kicked
    /// and hear of the caller's end only once it has connected, too.
    Connect,
    /// (timebase ticks from now): the kernel's mail has [`crate::mailbox::ALARM`] then.
    Alarm,
    /// (address of [`Counters`]): copies the kernel's counters.
    Count,
    /// (timebase ticks, 0 for none): the interval of the timer's interrupt on this hart, and 1 to
    /// arm it as the document does.
    Tick,
    /// (address, length): copies the kernel's command line; its length.
    CommandLine,
    /// (number of tasks, turns, where to write how many instructions that took): hands over between
    /// tasks of the kernel itself; how many hand-overs the tasks counted.
    KernelTasks,
    /// (0 or 1): whether address spaces keep their translations while
    /// others run. While no other space lives.
    KeepTranslations,
    /// (0 or 1): whether spaces made from now on have a kernel stack of their own, and are switched
    /// by way of it, as most kernels' processes are. While no other space lives. Such a space
    /// has no part of the pool, and is less urgent than the first.
    KernelStacks,
    /// As [`Call::Yield`], by the way of [`Call::GiveWay`], with all registers kept: the
    /// experiment's process at its shortest.
    YieldInEntry,
    /// This space's number.
    Myself,
    /// (exit status): stops the machine. The first space only.
    Stop,
}

/// How a space's executor is continued after it yielded with [`Call::GiveWay`].
#[repr(usize)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// Tasks have stacks.
    Stackful = 0,
    /// Tasks are polled.
    Future = 1,
}

/// In the arguments of [`Call::Pool`]: yield to other spaces after every turn.
pub const TURN_BY_TURN: usize = 2;

/// What a call was refused for; the answer is the negative number.
#[repr(isize)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No such call.
    NoSuchCall = -1,
    /// An address that is not the caller's to read or write.
    BadAddress = -2,
    /// No memory, or no number for one more space.
    Exhausted = -3,
    /// No such space, or none that the caller may do this to.
    NotYours = -4,
    /// An argument out of its range.
    BadArgument = -5,
    /// To the first space's wait: all others sleep too, and nobody is left who could wake one.
    AllSleep = -6,
}

/// The exit code of a space that its parent ended.
pub const KILLED: usize = usize::MAX;

/// The exit code of a space that the kernel ended is this, less the trap's cause or [`MEMORY`].
pub const FAULTED: usize = usize::MAX - 1;

/// In place of a cause: there was no memory for the copy of a page.
pub const MEMORY: usize = 16;

/// The greatest code a space can exit with.
pub const GREATEST_CODE: usize = FAULTED - 64;

/// What the kernel counts, since the machine started, over all harts.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Counters {
    /// Changes of address space: loads of another page table.
    pub space_changes: u64,
    /// Flushes of translations.
    pub flushes: u64,
    /// Interrupts of the timer.
    pub timer_interrupts: u64,
    /// Frames of memory in use.
    pub frames_used: u64,
    /// Frames of memory there are.
    pub frames: u64,
    /// Address spaces alive.
    pub spaces: u64,
    /// Harts that run.
    pub harts: u64,
}
