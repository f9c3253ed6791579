// SPDX-License-Identifier: MIT OR Apache-2.0
//! A POSIX semaphore in shared memory: one wait for each post.

use super::{Heard, Opened, Waiter, each, opened};
use crate::partner::Place;
use crate::wakes::shared::{Mail, words};
use std::time::Duration;

/// A semaphore that lives as long as the process.
#[derive(Clone, Copy)]
struct Semaphore(*mut libc::sem_t);

// SAFETY: its functions may be called from any thread.
unsafe impl Send for Semaphore {}

impl Semaphore {
    fn post(self) {
        // SAFETY: initialised in `one_by_one`.
        assert_eq!(unsafe { libc::sem_post(self.0) }, 0);
    }

    fn wait(self, limit: Duration) -> bool {
        // SAFETY: all bytes zero is a value of this plain struct; the call only writes it.
        let mut until: libc::timespec = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut until) }, 0);
        let nanoseconds = until.tv_nsec + i64::from(limit.subsec_nanos());
        until.tv_sec += limit.as_secs().cast_signed() + nanoseconds / 1_000_000_000;
        until.tv_nsec = nanoseconds % 1_000_000_000;
        // SAFETY: initialised in `one_by_one`.
        unsafe { libc::sem_timedwait(self.0, &raw const until) == 0 }
    }
}

struct Waits(Semaphore);

impl Waiter for Waits {
    fn wait(&mut self, limit: Duration, _: &Mail) -> Heard {
        if self.0.wait(limit) { Heard::Woken(1) } else { Heard::TimedOut }
    }
    fn sweep(&mut self, _: &Mail) -> u64 {
        // SAFETY: initialised in `one_by_one`.
        std::iter::repeat_with(|| unsafe { libc::sem_trywait(self.0.0) }).take_while(|got| *got == 0).count()
            as u64
    }
}

pub fn one_by_one(_: Place, notifiers: usize) -> Result<Opened, String> {
    let semaphore = Semaphore(std::ptr::from_ref(words::<1>()?).cast_mut().cast());
    const { assert!(size_of::<libc::sem_t>() <= 128) };
    // SAFETY: mapped for good, large enough, and nobody uses it yet.
    if unsafe { libc::sem_init(semaphore.0, 1, 0) } != 0 {
        return Err(format!("sem_init: {}", std::io::Error::last_os_error()));
    }
    Ok(opened(notifiers, each(semaphore, |semaphore| semaphore.post()), move || Waits(semaphore)))
}
