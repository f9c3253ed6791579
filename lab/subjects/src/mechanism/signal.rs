// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the signal mechanisms share: which signal, to whom, and that
//! it is blocked before anybody sends it.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::c_call::result;
use super::{Contexts, Fault, Link, Notifier, OpenError, Site, Waiter};

/// A way of taking a blocked signal.
pub(crate) trait Reception: Send + Sync + 'static {
    type Waiter: Waiter;
    /// Takes it, in the waiter's own thread, where the signals of `set` are blocked.
    fn begin(set: libc::sigset_t) -> Result<Self::Waiter, OpenError>;
}

pub(crate) struct SignalLink<R> {
    contexts: Contexts,
    /// The waiter's process and thread, once it stands ready.
    target: &'static [AtomicU32; 2],
    reception: PhantomData<R>,
}

/// The end that sends signals.
pub(crate) struct SignalNotifier {
    contexts: Contexts,
    process: libc::pid_t,
    thread: libc::pid_t,
}

/// The end of every signal mechanism's limits, before what its timed wait is.
macro_rules! queued_signals {
    ($timed:expr) => {
        concat!(
            "A real-time signal, since the standard ones do not count: each is queued, up to \
             RLIMIT_SIGPENDING for the user, beyond which sending fails with EAGAIN. Numbers are \
             few and belong to the whole process. ",
            $timed
        )
    };
}
pub(super) use queued_signals;

/// How all of them send.
macro_rules! by_signal {
    ($how:expr) => {
        concat!(
            "The notifier sends a real-time signal: sigqueue(3) to another process, tgkill(2) to a \
             thread of its own. The waiter keeps it blocked and ",
            $how
        )
    };
}
pub(super) use by_signal;

/// The first real-time signal that the C library leaves to programs.
pub(super) fn number() -> libc::c_int {
    libc::SIGRTMIN()
}

/// The set of `signal` alone.
pub(crate) fn set_of(signal: libc::c_int) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set; neither call can fail with a valid number.
    // JUSTIFICATION: rustix has no signal sets.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        set.assume_init()
    }
}

/// Keeps the signals of `set` from this thread.
pub(crate) fn block(set: &libc::sigset_t) -> Result<(), OpenError> {
    // SAFETY: the set lives through the call.
    // JUSTIFICATION: rustix has no signal masks.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set, ptr::null_mut()) } {
        0 => Ok(()),
        refused => Err(OpenError::call("pthread_sigmask", rustix::io::Errno::from_raw_os_error(refused))),
    }
}

impl<R: Reception> Link for SignalLink<R> {
    type Notifier = SignalNotifier;
    type Waiter = R::Waiter;
    fn open(site: &Site) -> Result<Self, OpenError> {
        Ok(Self { contexts: site.contexts(), target: site.place()?, reception: PhantomData })
    }
    fn waiter(&self) -> Result<R::Waiter, OpenError> {
        let set = set_of(number());
        // Blocking it now, before the notifier exists, is what keeps
        // a signal that comes before the first wait pending.
        block(&set)?;
        let waiter = R::begin(set)?;
        self.target[0].store(std::process::id(), Release);
        // Pairs with the Acquire load in `notifier`.
        self.target[1].store(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(), Release);
        Ok(waiter)
    }
    fn notifier(&self) -> Result<SignalNotifier, OpenError> {
        let [process, thread] = self.target.each_ref().map(|id| id.load(Acquire).cast_signed());
        if thread == 0 {
            return Err(OpenError::call("notifier", "the waiter has not been taken yet"));
        }
        Ok(SignalNotifier { contexts: self.contexts, process, thread })
    }
}

impl Notifier for SignalNotifier {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        let value = libc::sigval { sival_ptr: ptr::null_mut() };
        match self.contexts {
            // SAFETY: takes numbers only. The waiter lives as long as the trial, so its number is nobody
            // else's. JUSTIFICATION: rustix sends no real-time signals.
            Contexts::Processes => result(unsafe { libc::sigqueue(self.process, number(), value) })
                .map(drop)
                .map_err(Fault::of("sigqueue")),
            // SAFETY: as above.
            Contexts::Threads => result(unsafe { libc::tgkill(self.process, self.thread, number()) })
                .map(drop)
                .map_err(Fault::of("tgkill")),
        }
    }
}
