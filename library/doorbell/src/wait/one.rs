// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads of this process of whom one is woken.

use super::woken;
use crate::deadline::Deadline;
use crate::error::WaitError;
use doorbell_core::wake::Slept;
use doorbell_core::wake_one::{SleepOne, WakeOne};
use rustix::io::Errno;
use rustix::thread::futex::{Flags, wait_bitset, wake};
use std::num::NonZeroU32;
use std::sync::atomic::AtomicU32;

struct Sleeper(Option<Deadline>);

impl SleepOne for Sleeper {
    type Error = WaitError;

    fn sleep(&mut self, word: &AtomicU32, ticket: u32) -> Result<bool, WaitError> {
        let until = self.0.as_ref().map(Deadline::timespec);
        match wait_bitset(word, Flags::PRIVATE, ticket, until, NonZeroU32::MAX) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Ok(woken(self.0) == Slept::Woken),
            Err(Errno::TIMEDOUT) => Ok(false),
            Err(errno) => Err(WaitError::Os { call: "futex", errno }),
        }
    }
}

/// Takes something by `take`, and sleeps while there is nothing. `None` if the deadline came first.
pub(crate) fn take<R>(
    words: &WakeOne,
    deadline: Option<Deadline>,
    take: impl FnMut() -> Option<R>,
) -> Result<Option<R>, WaitError> {
    words.take(&mut Sleeper(deadline), take)
}

/// Wakes one who sleeps, for what was made true before.
#[inline]
pub(crate) fn wake_one(words: &WakeOne) {
    wake_some(words, 1);
}

/// Wakes all who sleep, for what was made true before.
pub(crate) fn wake_all(words: &WakeOne) {
    // The kernel takes the number as a signed one.
    wake_some(words, i32::MAX as u32);
}

#[inline]
fn wake_some(words: &WakeOne, count: u32) {
    if words.announce() {
        // Cannot fail: the address is valid.
        let _ = wake(words.epoch(), Flags::PRIVATE, count);
    }
}
