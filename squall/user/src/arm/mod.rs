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
    use core::arch::asm;
    use core::sync::atomic::AtomicUsize;
    use core::sync::atomic::Ordering::Relaxed;

    static TURNS: AtomicUsize = AtomicUsize::new(0);

    /// One turn. A load and a store: a space's tasks run one at a time.
    #[inline(always)]
    pub(crate) fn take() {
        TURNS.store(TURNS.load(Relaxed) + 1, Relaxed);
    }

    /// So many turns, with a hand-over after each, while `KEPT`
    /// values of the task's own are in use: the compiler keeps them
    /// where it finds that cheapest, and nothing is done with them.
    #[inline(always)]
    pub(crate) fn take_all<const KEPT: usize>(turns: usize, hand_over: impl Fn()) {
        let mut kept = [0_usize; KEPT];
        for _ in 0..turns {
            take();
            // Each in a register of its own, all at once, as in a calculation that goes on.
            if let Some([a, b, c, d, e, f, g, h, i, j, k, l]) = kept.first_chunk_mut::<12>() {
                // SAFETY: nothing is executed.
                unsafe {
                    asm!(
                        "# {} {} {} {} {} {} {} {} {} {} {} {}",
                        inout(reg) * a,
                        inout(reg) * b,
                        inout(reg) * c,
                        inout(reg) * d,
                        inout(reg) * e,
                        inout(reg) * f,
                        inout(reg) * g,
                        inout(reg) * h,
                        inout(reg) * i,
                        inout(reg) * j,
                        inout(reg) * k,
                        inout(reg) * l
                    );
                }
            }
            hand_over();
        }
    }

    /// All turns of this space.
    pub(crate) fn taken() -> usize {
        TURNS.load(Relaxed)
    }
}
