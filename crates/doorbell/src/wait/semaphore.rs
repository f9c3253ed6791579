// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sleeping on a POSIX semaphore that only this waiter takes tokens from.

use super::{Asleep, Wait, WaitEntry, after_signal, interruptible, woken};
use crate::deadline::Deadline;
use crate::error::WaitError;
use crate::mapping::Scope;
use crate::membarrier;
use doorbell_core::wake::{Sleep, Slept, Waiter, wait_until};
use rustix::io::Errno;

/// Sleeps on one of the semaphores in the bell's record, of which it holds a waiter slot from its first wait on.
///
/// Only where every peer is [`Trusted`](crate::peer::Trusted): the C library aborts the process over a semaphore that was
/// overwritten. Elsewhere waiting is [`WaitError::Unsupported`].
///
/// A semaphore cannot be waited for together with others: waiting for any of several bells is
/// [`WaitError::Unsupported`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Semaphore;

impl Wait for Semaphore {
    const NAME: &'static str = "semaphore";
    const MOST_BELLS: usize = 1;

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
        let [entry] = &mut *entries else {
            return Err(WaitError::TooManyBells { most: Self::MOST_BELLS });
        };
        entry.listener.slots.take_semaphore()?;
        let (slot, index) = entry.listener.slots.semaphore().expect("just taken");
        let semaphore = entry.state.record().semaphores[index].as_ptr().cast();
        let state = entry.state;
        let mut waiter = [Waiter::new(&state.record().wake, slot)];
        let scope = state.mapping().scope();
        let waited = wait_until(&mut waiter, &mut Sleeper { entries, semaphore, deadline, scope }, ready)?;
        for entry in entries {
            entry.listener.counters.slept(waited);
        }
        Ok(waited.ready)
    }
}

struct Sleeper<'a, 'b> {
    entries: &'a [WaitEntry<'b>],
    /// Initialised when the mapping was made; lives as long as the bell state.
    semaphore: *mut libc::sem_t,
    deadline: Option<Deadline>,
    scope: Scope,
}

impl Sleep for Sleeper<'_, '_> {
    type Error = WaitError;

    fn consume(&mut self, _: usize) -> Result<(), WaitError> {
        // A burst may have left several. Bounded, for a hostile peer may post for ever.
        for _ in 0..MOST_TOKENS {
            // SAFETY: `semaphore` is initialised and mapped.
            if unsafe { libc::sem_trywait(self.semaphore) } != 0 {
                break;
            }
        }
        Ok(())
    }

    fn barrier(&mut self, _: usize) -> Result<(), WaitError> {
        membarrier::run(self.scope)
    }

    fn sleep(&mut self, _: &[Waiter<'_>]) -> Result<Slept, WaitError> {
        let _asleep = Asleep::at(self.entries)?;
        let result = match &self.deadline {
            // SAFETY: `semaphore` is initialised and mapped.
            None => unsafe { libc::sem_wait(self.semaphore) },
            Some(deadline) => {
                let until = deadline.timespec();
                let until = libc::timespec { tv_sec: until.tv_sec, tv_nsec: until.tv_nsec };
                // SAFETY: as above; `until` lives across the call.
                unsafe { sem_clockwait(self.semaphore, libc::CLOCK_MONOTONIC, &until) }
            }
        };
        if result == 0 {
            return Ok(woken(self.deadline));
        }
        match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => after_signal(interruptible(self.entries)),
            Some(libc::ETIMEDOUT) => Ok(Slept::TimedOut),
            error => {
                Err(WaitError::Os { call: "sem_wait", errno: Errno::from_raw_os_error(error.unwrap_or(0)) })
            }
        }
    }
}

/// More than the wake-ups that can be under way at once: each needs a notifier of its own.
const MOST_TOKENS: u32 = 1 << 16;

#[cfg(not(target_env = "musl"))]
unsafe extern "C" {
    /// glibc 2.30, POSIX 2024. The libc crate does not declare it yet.
    fn sem_clockwait(
        sem: *mut libc::sem_t,
        clock: libc::clockid_t,
        until: *const libc::timespec,
    ) -> libc::c_int;
}

/// musl has none: its semaphores wait by the time of day alone. When that is set forward the wait goes on, when it is set back it
/// may be late by as much.
///
/// # Safety
/// `sem` is initialised and mapped, `until` is valid.
#[cfg(target_env = "musl")]
unsafe fn sem_clockwait(
    sem: *mut libc::sem_t,
    clock: libc::clockid_t,
    until: *const libc::timespec,
) -> libc::c_int {
    const SECOND: i64 = 1_000_000_000;
    let now = |clock| {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a valid place. Fails for no clock named here.
        unsafe { libc::clock_gettime(clock, &mut now) };
        now
    };
    // SAFETY: by contract.
    let until = unsafe { *until };
    loop {
        let (begun, today) = (now(clock), now(libc::CLOCK_REALTIME));
        let left = until
            .tv_sec
            .saturating_sub(begun.tv_sec)
            .saturating_mul(SECOND)
            .saturating_add(until.tv_nsec - begun.tv_nsec);
        let nanoseconds = today.tv_nsec + left.max(0) % SECOND;
        let tv_sec = today.tv_sec.saturating_add(left.max(0) / SECOND).saturating_add(nanoseconds / SECOND);
        // SAFETY: by contract.
        let result =
            unsafe { libc::sem_timedwait(sem, &libc::timespec { tv_sec, tv_nsec: nanoseconds % SECOND }) };
        let timed_out = std::io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT);
        if result == 0 || !timed_out || left <= 0 {
            return result;
        }
    }
}
