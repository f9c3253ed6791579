// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which process this is.

use crate::generation;

/// Tells a process from those forked from it, which have copies of all its memory.
///
/// The number alone does not: a process that is number 1 in a PID namespace may have a child that
/// is number 1 in another. The generation alone does not either: `vfork`'s child has its parent's,
/// and a child by `clone` has where the kernel empties no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    number: u32,
    generation: u32,
}

impl Process {
    /// The calling process.
    pub(crate) fn current() -> Self {
        Self { number: std::process::id(), generation: generation::generation() }
    }

    /// The same in one word, which is never 0: no process has the number 0.
    pub(crate) fn word(self) -> u64 {
        u64::from(self.number) << 32 | u64::from(self.generation)
    }

    /// As [`is_current`](Self::is_current), without a system call, by
    /// one load: as good from Linux 4.14 on.
    #[inline(always)]
    pub(crate) fn is_current_generation(self) -> bool {
        generation::is_current(self.generation)
    }

    /// Is this the calling process?
    pub(crate) fn is_current(self) -> bool {
        self == Self::current()
    }
}
