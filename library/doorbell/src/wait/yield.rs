// SPDX-License-Identifier: MIT OR Apache-2.0
//! Yielding: the processor waits, but lets others go first.

use super::{Wait, WaitEntry, look};
use crate::deadline::Deadline;
use crate::error::WaitError;

/// Calls `sched_yield` until the bell rings. Never sleeps, so nobody
/// ever makes a system call to wake it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Yield;

impl Wait for Yield {
    const NAME: &'static str = "yield";

    #[inline]
    fn wait(
        &mut self,
        entries: &mut [WaitEntry<'_>],
        ready: impl FnMut() -> bool,
        deadline: Option<Deadline>,
    ) -> Result<bool, WaitError> {
        // A yield costs ten times as much as a glance at the clock.
        look(entries, ready, deadline, 1, rustix::thread::sched_yield)
    }
}
