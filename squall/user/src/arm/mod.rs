// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arms of the experiment: one file for each way of getting from one task to the next.

pub(crate) mod across;
pub(crate) mod call;
pub(crate) mod document;
pub(crate) mod fork;
pub(crate) mod future;
pub(crate) mod kernel_task;
pub(crate) mod process;
pub(crate) mod stackful;

/// The level of all tasks of an arm.
pub(crate) const LEVEL: usize = 1;

/// What happens in every turn, whatever the kind of task: it is counted.
pub(crate) mod turn {
    use core::sync::atomic::AtomicUsize;
    use core::sync::atomic::Ordering::Relaxed;

    static TURNS: AtomicUsize = AtomicUsize::new(0);

    /// One turn. A load and a store: a space's tasks run one at a time.
    #[inline(always)]
    pub(crate) fn take() {
        TURNS.store(TURNS.load(Relaxed) + 1, Relaxed);
    }

    /// All turns of this space.
    pub(crate) fn taken() -> usize {
        TURNS.load(Relaxed)
    }
}
