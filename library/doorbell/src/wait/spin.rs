// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spinning: the processor waits.

use super::{Wait, WaitEntry, look};
use crate::deadline::Deadline;
use crate::error::WaitError;

/// Spins until the bell rings. Never sleeps, so nobody ever makes a system call to wake it.
///
/// It occupies its CPU. If the notifier needs that CPU, each wait
/// lasts until the scheduler takes it away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spin;

/// Looks between two glances at the clock, which costs some tens of
/// nanoseconds: as much as a few looks.
const LOOKS_PER_GLANCE: u32 = 64;

impl Wait for Spin {
    const NAME: &'static str = "spin";

    #[inline]
    fn wait(
        &mut self,
        entries: &mut [WaitEntry<'_>],
        ready: impl FnMut() -> bool,
        deadline: Option<Deadline>,
    ) -> Result<bool, WaitError> {
        look(entries, ready, deadline, LOOKS_PER_GLANCE, std::hint::spin_loop)
    }
}
