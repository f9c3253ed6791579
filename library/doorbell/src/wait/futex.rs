// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sleeping on the futex word, at once.

use super::{Asleep, Wait, WaitEntry, after_signal, interruptible, sleep_by, woken};
use crate::deadline::Deadline;
use crate::error::WaitError;
use doorbell_core::wake::{Sleep, Slept, Waiter, WaiterSlot};
use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::ClockId;
use std::num::NonZeroU32;

/// Sleeps on the futex. For several bells at once it needs `futex_waitv` (Linux 5.16).
#[derive(Clone, Copy, Debug, Default)]
pub struct Futex;

impl Wait for Futex {
    const NAME: &'static str = "futex";
    const MOST_BELLS: usize = super::MOST_FUTEXES;

    #[inline]
    fn wait(
        &mut self,
        entries: &mut [WaitEntry<'_>],
        mut ready: impl FnMut() -> bool,
        deadline: Option<Deadline>,
    ) -> Result<bool, WaitError> {
        if ready() {
            return Ok(true);
        }
        sleep(entries, ready, deadline)
    }
}

/// Sleeps until `ready`, by the protocol. What
/// [`Adaptive`](super::Adaptive) does when spinning did not help.
pub(crate) fn sleep(
    entries: &mut [WaitEntry<'_>],
    ready: impl FnMut() -> bool,
    deadline: Option<Deadline>,
) -> Result<bool, WaitError> {
    sleep_by(entries, |_| WaiterSlot::FUTEX, Sleeper { entries, deadline }, ready)
}

struct Sleeper<'a, 'b> {
    entries: &'a [WaitEntry<'b>],
    deadline: Option<Deadline>,
}

impl Sleep for Sleeper<'_, '_> {
    type Error = WaitError;

    fn consume(&mut self, _: usize) -> Result<(), WaitError> {
        // A futex wake leaves nothing behind.
        Ok(())
    }

    fn barrier(&mut self, index: usize) -> Result<(), WaitError> {
        self.entries[index].state.barrier()
    }

    fn sleep(&mut self, waiters: &[Waiter<'_>]) -> Result<Slept, WaitError> {
        let _asleep = Asleep::at(self.entries)?;
        let until = self.deadline.as_ref().map(Deadline::timespec);
        let (call, result) = match (waiters, self.entries) {
            ([waiter], [entry]) => {
                let (word, flags) = (waiter.words().epoch(), entry.state.futex_flags());
                ("futex", futex::wait_bitset(word, flags, waiter.ticket(), until, NonZeroU32::MAX))
            }
            _ => {
                let words: Vec<_> = waiters.iter().zip(self.entries).map(waitv_word).collect();
                let waited = futex::waitv(&words, futex::WaitvFlags::empty(), until, ClockId::Monotonic);
                ("futex_waitv", waited.map(drop))
            }
        };
        match result {
            Ok(()) | Err(Errno::AGAIN) => Ok(woken(self.deadline)),
            Err(Errno::INTR) => after_signal(interruptible(self.entries)),
            Err(Errno::TIMEDOUT) => Ok(Slept::TimedOut),
            Err(errno @ (Errno::NOSYS | Errno::PERM)) => Err(WaitError::Unsupported { what: call, errno }),
            Err(errno) => Err(WaitError::Os { call, errno }),
        }
    }
}

fn waitv_word((waiter, entry): (&Waiter<'_>, &WaitEntry<'_>)) -> futex::Wait {
    let mut word = futex::Wait::new();
    word.val = u64::from(waiter.ticket());
    word.uaddr = futex::WaitPtr::new(waiter.words().epoch().as_ptr().cast());
    word.flags = futex::WaitFlags::SIZE_U32;
    if entry.state.futex_flags().contains(futex::Flags::PRIVATE) {
        word.flags |= futex::WaitFlags::PRIVATE;
    }
    word
}
