// SPDX-License-Identifier: MIT OR Apache-2.0
//! rt-tests' `sigwaittest`: a signal awaited by `sigwait`.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};

use super::handover::{Handover, OneWay};
use super::{Contexts, Explanation, Fault, Form, Operation, PLAIN};
use crate::mechanism::signal::{block, set_of};
use doorbell_harness::role::Role;

pub(super) const OPERATION: Operation = Operation {
    name: "handover-signal",
    form: Form::two_sides("hand-over", 1),
    explanation: Explanation {
        summary: "the protocol of sigwaittest: a signal awaited by sigwait, one way",
        how: "The sender stamps and signals; the receiver, asleep in sigwait, stamps, sleeps \
            200 us and signals back.",
        kernel: "The signal is queued; a thread that waits for it in sigtimedwait is woken and \
            takes it from the queue.",
        limits: "Run it with --scheduler fifo and on one core as the tool does; its -a pins \
            both sides to one CPU.",
        sources: &["rt-tests, sigwaittest.c", "sigwaitinfo(2)"],
    },
    usual: false,
    open: |site, _| {
        // Blocked before the sides exist, so that no signal finds a side that would die of it.
        let sets = [libc::SIGUSR1, libc::SIGUSR2].map(set_of);
        sets.iter().try_for_each(block)?;
        let tasks = [site.place::<AtomicU64>()?, site.place::<AtomicU64>()?];
        let threads = site.contexts() == Contexts::Threads;
        Ok(Box::new(OneWay(Signals { tasks, threads, sets })))
    },
    ..PLAIN
};

/// Whom to signal, and what is waited for.
struct Signals {
    /// The sender, and the receiver: each writes its number before the rendezvous.
    tasks: [&'static AtomicU64; 2],
    threads: bool,
    /// `SIGUSR1`, and `SIGUSR2`.
    sets: [libc::sigset_t; 2],
}

impl Signals {
    #[inline(always)]
    fn signal(&self, whom: usize, signal: libc::c_int) -> Result<(), Fault> {
        // Pairs with the Release store in `begin`; the rendezvous lies between them.
        let task = self.tasks[whom].load(Acquire);
        if self.threads {
            // SAFETY: the other side's thread lives until both sides have left their loops: it is joined
            // after that. JUSTIFICATION: the tool signals threads by this function, whose two
            // changes of the signal mask around the signal are part of its figure.
            match unsafe { libc::pthread_kill(task, signal) } {
                0 => Ok(()),
                error => Err(Fault::new("pthread_kill", std::io::Error::from_raw_os_error(error))),
            }
        // SAFETY: takes integers only.
        } else if unsafe { libc::kill(task as libc::pid_t, signal) } == 0 {
            Ok(())
        } else {
            Err(Fault::new("kill", std::io::Error::last_os_error()))
        }
    }

    #[inline(always)]
    fn wait(&self, set: usize) -> Result<(), Fault> {
        let mut signal = 0;
        // SAFETY: the set is valid, and both pointers live through the call.
        match unsafe { libc::sigwait(&raw const self.sets[set], &raw mut signal) } {
            0 => Ok(()),
            error => Err(Fault::new("sigwait", std::io::Error::from_raw_os_error(error))),
        }
    }
}

impl Handover for Signals {
    fn begin(&self, role: Role) -> Result<(), Fault> {
        let task = if self.threads {
            // SAFETY: takes nothing, cannot fail.
            unsafe { libc::pthread_self() }
        } else {
            rustix::process::getpid().as_raw_nonzero().get().unsigned_abs().into()
        };
        self.tasks[role.index()].store(task, Release);
        Ok(())
    }
    #[inline]
    fn release(&self) -> Result<(), Fault> {
        self.signal(1, libc::SIGUSR2)
    }
    #[inline]
    fn turn(&self) -> Result<(), Fault> {
        self.wait(0)
    }
    #[inline]
    fn acquire(&self) -> Result<(), Fault> {
        self.wait(1)
    }
    #[inline]
    fn allow(&self) -> Result<(), Fault> {
        self.signal(0, libc::SIGUSR1)
    }
}
