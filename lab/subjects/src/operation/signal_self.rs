// SPDX-License-Identifier: MIT OR Apache-2.0
//! A signal to oneself, through a handler.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::alone::{Alone, Bench, Solo};
use super::{Form, Operation};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_harness::side::{Side, SideError};
use doorbell_results::configuration::Configuration;

/// `tgkill` to the calling thread, delivered to a handler.
#[derive(Debug)]
pub(super) struct SignalSelf;

/// Signals handled by this process; one trial runs in it.
static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: libc::c_int) {
    HANDLED.fetch_add(1, Relaxed);
}

impl Operation for SignalSelf {
    fn name(&self) -> &'static str {
        "signal-self"
    }
    fn form(&self) -> Form {
        Form::alone("signal", 100)
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "signal to the calling thread, through a handler",
            how: "tgkill(SIGUSR1) to itself in a loop; the handler counts, and the count must \
                equal the signals sent.",
            kernel: "Queues the signal, finds it pending on the way back to user mode, builds a \
                frame on the stack, runs the handler, and comes back through sigreturn: three \
                kernel entries' worth of work.",
            limits: "Percentiles are those of batch averages.",
            sources: &["signal(7), sigreturn(2)", "lmbench lat_sig catch"],
        }
    }
    fn open(&self, _: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        Ok(Box::new(Solo(Self)))
    }
}

impl Alone for SignalSelf {
    type Bench = Signals;
    fn set_up(&self, _: &Side) -> Result<Signals, SideError> {
        // SAFETY: sigaction is plain data, valid when zero: no flags, an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(libc::c_int) = count;
        action.sa_sigaction = handler as libc::sighandler_t;
        // SAFETY: `action` lives through the call, and the handler only increments an atomic, which is
        // async-signal-safe. JUSTIFICATION: rustix leaves signal handlers to libc.
        if unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) } != 0 {
            return Err(Fault::new("sigaction", std::io::Error::last_os_error()).into());
        }
        HANDLED.store(0, Relaxed);
        Ok(Signals {
            process: rustix::process::getpid().as_raw_nonzero().get(),
            thread: rustix::thread::gettid().as_raw_nonzero().get(),
        })
    }
}

#[derive(Debug)]
pub(super) struct Signals {
    process: libc::pid_t,
    thread: libc::pid_t,
}

impl Bench for Signals {
    fn run(&mut self, count: u32) -> Result<(), Fault> {
        for _ in 0..count {
            // SAFETY: takes integers only; the handler is set.
            // JUSTIFICATION: neither rustix nor libc has tgkill.
            if unsafe { libc::syscall(libc::SYS_tgkill, self.process, self.thread, libc::SIGUSR1) } != 0 {
                return Err(Fault::new("tgkill", std::io::Error::last_os_error()));
            }
        }
        Ok(())
    }

    fn check(&self, total: u64) -> Result<(), Fault> {
        let handled = HANDLED.load(Relaxed);
        if handled == total {
            Ok(())
        } else {
            Err(Fault::new("signal-self", format!("{total} signals sent, {handled} handled")))
        }
    }
}
