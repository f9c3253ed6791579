// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which process this is.

use crate::atfork_lock;

/// Tells a process from those forked from it, which have copies of all its memory.
///
/// The number alone does not: a process that is number 1 in a PID namespace may have a child that is number 1 in
/// another. The generation alone does not either: `clone` and `vfork` called by hand pass its counting by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    number: u32,
    generation: u32,
}

impl Process {
    /// The calling process.
    pub(crate) fn current() -> Self {
        Self { number: std::process::id(), generation: atfork_lock::generation() }
    }

    /// The same in one word, which is never 0: no process has the number 0.
    pub(crate) fn word(self) -> u64 {
        u64::from(self.number) << 32 | u64::from(self.generation)
    }

    /// As [`is_current`](Self::is_current), without a system call: a child made by calling `clone` by hand is not told apart.
    pub(crate) fn is_current_generation(self) -> bool {
        self.generation == atfork_lock::generation()
    }

    /// Is this the calling process?
    pub(crate) fn is_current(self) -> bool {
        self == Self::current()
    }
}
