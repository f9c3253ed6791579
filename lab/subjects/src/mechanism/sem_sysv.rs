// SPDX-License-Identifier: MIT OR Apache-2.0
//! A System V semaphore set of one.

use std::ptr;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::io::{Errno, retry_on_intr};

use super::c_call::{PROBE_KEY, absent_or_made, result};
use super::deadline::{Deadline, relative};
use super::{Explanation, Fault, Link, Mechanism, Notifier, OpenError, Site, Unavailable, Waiter, Woken};
use doorbell_harness::run_dir::Note;

pub(crate) struct SemSysv;

/// The set's key; the waiter makes the set, the notifier finds it.
pub(crate) struct SemSysvLink(libc::key_t);

#[derive(Clone, Copy)]
pub(crate) struct SemSysvEnd {
    set: libc::c_int,
    number: u16,
}

impl SemSysvEnd {
    /// An end of semaphore `number` of `set`.
    pub(crate) fn of(set: libc::c_int, number: u16) -> Self {
        Self { set, number }
    }
}

/// Makes the set `key` of `count` semaphores, all zero.
fn make(key: libc::key_t, count: libc::c_int) -> Result<libc::c_int, OpenError> {
    // SAFETY: takes integers only.
    // JUSTIFICATION: rustix has no System V semaphores.
    result(unsafe { libc::semget(key, count, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) }).map_err(|error| {
        OpenError::with_cure(
            "semget",
            error,
            "remove sets that nobody uses (`ipcs -s`, `ipcrm -s`) or raise the last figure of \
             /proc/sys/kernel/sem",
        )
    })
}

/// A key of a set that the end of the trial removes by its note.
fn noted_key(site: &Site) -> Result<libc::key_t, OpenError> {
    let key = site.key()?;
    site.leave_note(Note::SystemVSemaphores(key))?;
    Ok(key)
}

/// Makes a set of `count` semaphores, all zero, for as long as the trial.
pub(crate) fn make_set(site: &Site, count: libc::c_int) -> Result<libc::c_int, OpenError> {
    make(noted_key(site)?, count)
}

/// Adds `change` to the semaphore, waiting for it to stay above zero unless `flags` forbid; with a
/// time-out if there is one.
#[inline]
fn change(end: SemSysvEnd, change: i16, flags: i16, timeout: Option<&Timespec>) -> Result<(), Errno> {
    let mut operation = libc::sembuf { sem_num: end.number, sem_op: change, sem_flg: flags };
    let timeout = timeout.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: one operation, and a time of the kernel's own type or null, which both live through the
    // call. JUSTIFICATION: neither rustix nor libc has semtimedop.
    result(unsafe { libc::syscall(libc::SYS_semtimedop, end.set, &raw mut operation, 1_usize, timeout) })
        .map(drop)
}

impl Mechanism for SemSysv {
    type Link = SemSysvLink;
    const NAME: &'static str = "sem-sysv";
    const COALESCES: bool = false;

    const EXPLANATION: Explanation = Explanation {
        summary: "System V semaphore set of one semaphore",
        how: "The waiter makes a set of one semaphore with semget, the notifier finds it by \
            its key. The notifier adds one with semop, the waiter subtracts one, which waits \
            while the value is zero. Each direction has a set of its own.",
        kernel: "Every semop is a system call, waiter or not: look the set up, check \
            permissions, lock the set or the one semaphore, apply the operation, walk the list \
            of those who wait for it and wake whom it satisfies.",
        limits: "The limits are in /proc/sys/kernel/sem; the last one, sets on the system, is \
            32000 on current kernels and 128 on old images. A value reaches 32767. Sets \
            outlive their users and are seen by all in the same IPC namespace. The timed wait \
            is semtimedop(2).",
        sources: &[
            "semop(2), semget(2), proc_sys_kernel(5)",
            "Linux ipc/sem.c",
            "lmbench lat_sem, rt-tests svsematest, stress-ng --switch-method sem-sysv: this mechanism",
        ],
    };

    fn available() -> Result<(), Unavailable> {
        // SAFETY: takes integers only.
        absent_or_made("semget(2)", result(unsafe { libc::semget(PROBE_KEY, 1, 0) }))
    }
}

impl Link for SemSysvLink {
    type Notifier = SemSysvEnd;
    type Waiter = SemSysvEnd;
    fn open(site: &Site) -> Result<Self, OpenError> {
        noted_key(site).map(Self)
    }
    fn waiter(&self) -> Result<SemSysvEnd, OpenError> {
        make(self.0, 1).map(|set| SemSysvEnd::of(set, 0))
    }
    fn notifier(&self) -> Result<SemSysvEnd, OpenError> {
        // SAFETY: takes integers only.
        let set = result(unsafe { libc::semget(self.0, 1, 0) });
        set.map(|set| SemSysvEnd::of(set, 0)).map_err(OpenError::of("semget"))
    }
}

impl Notifier for SemSysvEnd {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        retry_on_intr(|| change(*self, 1, 0, None)).map_err(Fault::of("semop"))
    }
}

impl Waiter for SemSysvEnd {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        retry_on_intr(|| change(*self, -1, 0, None)).map_err(Fault::of("semop"))
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let deadline = Deadline::after(timeout);
        let mut rest = timeout;
        loop {
            match change(*self, -1, 0, Some(&relative(rest))) {
                Ok(()) => return Ok(Woken::Notified),
                Err(Errno::AGAIN) => return Ok(Woken::TimedOut),
                Err(Errno::INTR) => rest = deadline.rest().unwrap_or_default(),
                Err(error) => return Err(Fault::new("semtimedop", error)),
            }
        }
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        match change(*self, -1, libc::IPC_NOWAIT as i16, None) {
            Ok(()) => Ok(true),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(Fault::new("semop(IPC_NOWAIT)", error)),
        }
    }
}
