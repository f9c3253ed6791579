// SPDX-License-Identifier: MIT OR Apache-2.0
//! A signal to oneself, through a handler.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::alone::{Bench, alone};
use super::{Explanation, Fault, Form, Operation, PLAIN};
use crate::mechanism::c_call::handle;
use doorbell_harness::side::SideError;

/// Signals handled by this process; one trial runs in it.
static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: libc::c_int) {
    HANDLED.fetch_add(1, Relaxed);
}

pub(super) const OPERATION: Operation = Operation {
    name: "signal-self",
    form: Form::alone("signal", 100),
    explanation: Explanation {
        summary: "signal to the calling thread, through a handler",
        how: "tgkill(SIGUSR1) to itself in a loop; the handler counts, and the count must \
            equal the signals sent.",
        kernel: "Queues the signal, finds it pending on the way back to user mode, builds a \
            frame on the stack, runs the handler, and comes back through sigreturn: three \
            kernel entries' worth of work.",
        limits: "Percentiles are those of batch averages.",
        sources: &["signal(7), sigreturn(2)", "lmbench lat_sig catch"],
    },
    open: |_, _| alone(|_| set_up()),
    ..PLAIN
};

fn set_up() -> Result<Signals, SideError> {
    // SAFETY: the handler only increments an atomic, which is async-signal-safe.
    unsafe { handle(libc::SIGUSR1, count, 0) }.map_err(Fault::of("sigaction"))?;
    HANDLED.store(0, Relaxed);
    Ok(Signals {
        process: rustix::process::getpid().as_raw_nonzero().get(),
        thread: rustix::thread::gettid().as_raw_nonzero().get(),
    })
}

struct Signals {
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
