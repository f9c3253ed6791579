// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sleeping on the futex word through io_uring (Linux 6.7).

use super::{Asleep, Wait, WaitEntry, after_signal, interruptible, sleep_by, woken};
use crate::deadline::Deadline;
use crate::error::WaitError;
use doorbell_core::wake::{Sleep, Slept, Waiter, WaiterSlot};
use io_uring::{opcode, types};
use rustix::io::Errno;
use rustix::thread::futex::{Flags, WaitFlags};
use std::fmt;

/// Sleeps in `io_uring_enter` until a futex request completes.
/// Notifiers wake it as any futex sleeper.
#[derive(Default)]
pub struct IoUring {
    /// Made by the first wait.
    ring: Option<io_uring::IoUring>,
}

impl fmt::Debug for IoUring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoUring").field("made", &self.ring.is_some()).finish()
    }
}

impl Wait for IoUring {
    const NAME: &'static str = "io_uring";

    fn wait(
        &mut self,
        entries: &mut [WaitEntry<'_>],
        mut ready: impl FnMut() -> bool,
        deadline: Option<Deadline>,
    ) -> Result<bool, WaitError> {
        if ready() {
            return Ok(true);
        }
        let ring = match &mut self.ring {
            Some(ring) => ring,
            none => none.insert(io_uring::IoUring::new(2).map_err(|error| WaitError::Unsupported {
                what: "io_uring",
                errno: Errno::from_io_error(&error).unwrap_or(Errno::NOSYS),
            })?),
        };
        sleep_by(entries, |_| WaiterSlot::FUTEX, Sleeper { ring, entries, deadline }, ready)
    }
}

const FUTEX_REQUEST: u64 = 1;
const CANCEL_REQUEST: u64 = 2;
/// `FUTEX_BITSET_MATCH_ANY`.
const ANY_BIT: u64 = u32::MAX as u64;

struct Sleeper<'a, 'b> {
    ring: &'a mut io_uring::IoUring,
    entries: &'a [WaitEntry<'b>],
    deadline: Option<Deadline>,
}

impl Sleeper<'_, '_> {
    fn flags(entry: &WaitEntry<'_>) -> u32 {
        let mut flags = WaitFlags::SIZE_U32;
        if entry.state.futex_flags().contains(Flags::PRIVATE) {
            flags |= WaitFlags::PRIVATE;
        }
        flags.bits()
    }

    fn push(&mut self, request: &io_uring::squeue::Entry) -> Result<(), WaitError> {
        // SAFETY: what the request points to lives until its
        // completion is reaped, which `sleep` does before it returns.
        unsafe { self.ring.submission().push(request) }
            .map_err(|_| WaitError::Os { call: "io_uring submission", errno: Errno::BUSY })
    }

    /// Waits for a completion until the deadline. `None` if it passed.
    fn completion(
        &mut self,
        until: Option<Deadline>,
        interruptible: bool,
    ) -> Result<Option<(u64, i32)>, WaitError> {
        loop {
            if let Some(done) = self.ring.completion().next() {
                return Ok(Some((done.user_data(), done.result())));
            }
            let entered = match until {
                None => self.ring.submit_and_wait(1),
                Some(deadline) => {
                    let left = deadline.remaining();
                    let left = types::Timespec::new()
                        .sec(u64::try_from(left.tv_sec).unwrap_or(0))
                        .nsec(u32::try_from(left.tv_nsec).unwrap_or(0));
                    self.ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&left))
                }
            };
            match entered {
                Ok(_) => {}
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::TIME) => {
                        return Ok(self
                            .ring
                            .completion()
                            .next()
                            .map(|done| (done.user_data(), done.result())));
                    }
                    Some(Errno::INTR) => drop(after_signal(interruptible)?),
                    errno => {
                        return Err(WaitError::Os {
                            call: "io_uring_enter",
                            errno: errno.unwrap_or(Errno::IO),
                        });
                    }
                },
            }
        }
    }

    /// Takes the futex request back and waits for both completions.
    /// The cancelling request may find it done.
    fn cancel(&mut self) -> Result<(), WaitError> {
        self.push(&opcode::AsyncCancel::new(FUTEX_REQUEST).build().user_data(CANCEL_REQUEST))?;
        for _ in 0..2 {
            // Not interruptible: the request points to what is gone when `sleep` returns.
            self.completion(None, false)?;
        }
        Ok(())
    }
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
        let words: Vec<_>;
        let request = if let ([waiter], [entry]) = (waiters, self.entries) {
            let word = waiter.words().epoch().as_ptr();
            opcode::FutexWait::new(word, u64::from(waiter.ticket()), ANY_BIT, Self::flags(entry)).build()
        } else {
            words = waiters
                .iter()
                .zip(self.entries)
                .map(|(waiter, entry)| {
                    types::FutexWaitV::new()
                        .val(u64::from(waiter.ticket()))
                        .uaddr(waiter.words().epoch().as_ptr() as u64)
                        .flags(Self::flags(entry))
                })
                .collect();
            let count = u32::try_from(words.len()).unwrap_or(u32::MAX);
            opcode::FutexWaitV::new(words.as_ptr(), count).build()
        };
        self.push(&request.user_data(FUTEX_REQUEST))?;
        let result = match self.completion(self.deadline, interruptible(self.entries)) {
            Ok(Some((_, result))) => result,
            Ok(None) => {
                self.cancel()?;
                return Ok(Slept::TimedOut);
            }
            Err(error) => {
                self.cancel()?;
                return Err(error);
            }
        };
        if result >= 0 {
            return Ok(woken(self.deadline));
        }
        match Errno::from_raw_os_error(result.wrapping_neg()) {
            Errno::AGAIN | Errno::INTR => Ok(woken(self.deadline)),
            errno @ (Errno::INVAL | Errno::NOSYS) => {
                Err(WaitError::Unsupported { what: "io_uring's futex wait (Linux 6.7)", errno })
            }
            errno => Err(WaitError::Os { call: "io_uring futex wait", errno }),
        }
    }
}
