// SPDX-License-Identifier: MIT OR Apache-2.0
//! rt-tests' `ptsematest`: a pthread mutex handed over, whatever the tool's name says.

use std::cell::UnsafeCell;

use super::handover::{Handover, OneWay};
use super::{Contexts, Explanation, Fault, Form, OpenError, Operation, PLAIN};
use doorbell_harness::role::Role;

pub(super) const OPERATION: Operation = Operation {
    name: "handover-mutex",
    form: Form::two_sides("hand-over", 1),
    explanation: Explanation {
        summary: "the protocol of ptsematest: a pthread mutex from one thread to another, one way",
        how: "The receiver sleeps in pthread_mutex_lock on a mutex that the sender holds; the \
            sender stamps and unlocks; the receiver stamps, sleeps 200 us, and unlocks a \
            second mutex on which the sender waits.",
        kernel: "Unlocking a contended mutex is a FUTEX_WAKE; the woken thread takes it in user mode.",
        limits: "A thread unlocks what another locked: undefined by POSIX, works with glibc's \
            default mutex. Run it with --scheduler fifo and on one core as the tool does; its \
            -a pins both threads to one CPU.",
        sources: &["rt-tests, ptsematest.c (\"test POSIX threads mutex latency\")"],
    },
    only: Some(Contexts::Threads),
    usual: false,
    open: |_, _| {
        let pair: &'static [Mutex; 2] = Box::leak(Box::new([Mutex::new(), Mutex::new()]));
        // Whoever is first to come waits: the mutex to be handed over starts locked.
        lock(&pair[0]).map_err(|fault| OpenError::call("pthread_mutex_lock", fault))?;
        Ok(Box::new(OneWay(Pair(pair))))
    },
    ..PLAIN
};

/// A mutex of the C library, of its default kind.
struct Mutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: pthread_mutex_t is made to be used by several threads at
// once, and nothing else touches the configuration.
unsafe impl Sync for Mutex {}
// SAFETY: as above; it is leaked and so never moves once it is in use.
unsafe impl Send for Mutex {}

impl Mutex {
    fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }
}

fn lock(mutex: &'static Mutex) -> Result<(), Fault> {
    // SAFETY: an initialised mutex that lives for ever and never moves.
    match unsafe { libc::pthread_mutex_lock(mutex.0.get()) } {
        0 => Ok(()),
        error => Err(Fault::new("pthread_mutex_lock", std::io::Error::from_raw_os_error(error))),
    }
}

fn unlock(mutex: &'static Mutex) -> Result<(), Fault> {
    // SAFETY: as above. glibc's default mutex does not ask who locked it.
    match unsafe { libc::pthread_mutex_unlock(mutex.0.get()) } {
        0 => Ok(()),
        error => Err(Fault::new("pthread_mutex_unlock", std::io::Error::from_raw_os_error(error))),
    }
}

struct Pair(&'static [Mutex; 2]);

impl Handover for Pair {
    fn begin(&self, role: Role) -> Result<(), Fault> {
        if role.index() == 0 { lock(&self.0[1]) } else { Ok(()) }
    }
    #[inline]
    fn release(&self) -> Result<(), Fault> {
        unlock(&self.0[0])
    }
    #[inline]
    fn turn(&self) -> Result<(), Fault> {
        lock(&self.0[1])
    }
    #[inline]
    fn acquire(&self) -> Result<(), Fault> {
        lock(&self.0[0])
    }
    #[inline]
    fn allow(&self) -> Result<(), Fault> {
        unlock(&self.0[1])
    }
}
