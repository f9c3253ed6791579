// SPDX-License-Identifier: MIT OR Apache-2.0
//! rt-tests' `sigwaittest`: a signal awaited by `sigwait`.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};

use super::handover::{Handover, OneWay, Receiver, Sender};
use super::{Form, Operation};
use crate::mechanism::{Contexts, Explanation, Fault, Links, OpenError, Site};
use doorbell_harness::side::SideError;
use doorbell_results::configuration::Configuration;

/// `SIGUSR2` there, `SIGUSR1` back.
#[derive(Debug)]
pub(super) struct HandoverSignal;

impl Operation for HandoverSignal {
    fn name(&self) -> &'static str {
        "handover-signal"
    }
    fn form(&self) -> Form {
        Form::two_sides("hand-over", 1)
    }
    fn usual(&self) -> bool {
        false
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "the protocol of sigwaittest: a signal awaited by sigwait, one way",
            how: "The sender stamps and signals; the receiver, asleep in sigwait, stamps, sleeps \
                200 us and signals back.",
            kernel: "The signal is queued; a thread that waits for it in sigtimedwait is woken and \
                takes it from the queue.",
            limits: "Run it with --scheduler fifo and on one core as the tool does; its -a pins \
                both sides to one CPU.",
            sources: &["rt-tests, sigwaittest.c", "sigwaitinfo(2)"],
        }
    }
    fn open(&self, site: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        // Blocked before the sides exist, so that no signal finds a side that would die of it.
        let (usr1, usr2) = (set_of(libc::SIGUSR1), set_of(libc::SIGUSR2));
        for set in [usr1, usr2] {
            // SAFETY: `set` is a valid set that lives through the call.
            let error =
                unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
            if error != 0 {
                return Err(OpenError::call("pthread_sigmask", std::io::Error::from_raw_os_error(error)));
            }
        }
        let tasks = [site.place::<AtomicU64>()?, site.place::<AtomicU64>()?];
        Ok(Box::new(OneWay(Signals { tasks, threads: site.contexts() == Contexts::Threads })))
    }
}

/// Whom to signal: each side writes its number before the rendezvous.
#[derive(Debug)]
struct Signals {
    tasks: [&'static AtomicU64; 2],
    threads: bool,
}

/// One side: whom it signals with what, and what it waits for.
#[derive(Debug)]
struct End {
    other: &'static AtomicU64,
    threads: bool,
    sends: libc::c_int,
    awaits: libc::sigset_t,
}

impl Signals {
    fn end(&self, own: usize, sends: libc::c_int, awaits: libc::c_int) -> End {
        let task = if self.threads {
            // SAFETY: takes nothing, cannot fail.
            unsafe { libc::pthread_self() }
        } else {
            rustix::process::getpid().as_raw_nonzero().get().unsigned_abs().into()
        };
        // Pairs with the Acquire load in `End::signal`; the rendezvous lies between them.
        self.tasks[own].store(task, Release);
        End { other: self.tasks[1 - own], threads: self.threads, sends, awaits: set_of(awaits) }
    }
}

impl Handover for Signals {
    type Sender = End;
    type Receiver = End;
    fn sender(&self) -> Result<End, SideError> {
        Ok(self.end(0, libc::SIGUSR2, libc::SIGUSR1))
    }
    fn receiver(&self) -> Result<End, SideError> {
        Ok(self.end(1, libc::SIGUSR1, libc::SIGUSR2))
    }
}

impl End {
    #[inline(always)]
    fn signal(&self) -> Result<(), Fault> {
        let task = self.other.load(Acquire);
        if self.threads {
            // SAFETY: the other side's thread lives until both sides have left their loops: it is joined
            // after that. JUSTIFICATION: the tool signals threads by this function, whose two
            // changes of the signal mask around the signal are part of its figure.
            match unsafe { libc::pthread_kill(task, self.sends) } {
                0 => Ok(()),
                error => Err(Fault::new("pthread_kill", std::io::Error::from_raw_os_error(error))),
            }
        // SAFETY: takes integers only.
        } else if unsafe { libc::kill(task as libc::pid_t, self.sends) } == 0 {
            Ok(())
        } else {
            Err(Fault::new("kill", std::io::Error::last_os_error()))
        }
    }

    #[inline(always)]
    fn wait(&self) -> Result<(), Fault> {
        let mut signal = 0;
        // SAFETY: the set is valid, and both pointers live through the call.
        match unsafe { libc::sigwait(&raw const self.awaits, &raw mut signal) } {
            0 => Ok(()),
            error => Err(Fault::new("sigwait", std::io::Error::from_raw_os_error(error))),
        }
    }
}

impl Sender for End {
    #[inline]
    fn release(&mut self) -> Result<(), Fault> {
        self.signal()
    }
    #[inline]
    fn turn(&mut self) -> Result<(), Fault> {
        self.wait()
    }
}

impl Receiver for End {
    #[inline]
    fn acquire(&mut self) -> Result<(), Fault> {
        self.wait()
    }
    #[inline]
    fn allow(&mut self) -> Result<(), Fault> {
        self.signal()
    }
}

/// The set that holds one signal.
fn set_of(signal: libc::c_int) -> libc::sigset_t {
    // SAFETY: sigset_t is plain data; sigemptyset makes it valid, and
    // both calls are given our own memory.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        set
    }
}
