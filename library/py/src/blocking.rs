// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting without the interpreter's lock, and hearing signals meanwhile.
//!
//! Python runs signal handlers in its main thread, between two of its instructions. A wait there
//! ends when a signal interrupts its system call, runs the handlers, and goes on. A signal just
//! before the system call does not interrupt it, so the main thread also looks for itself, once
//! every [`GLANCE`]; other threads need not.

use doorbell::WaitError;
use doorbell::wait::Interrupt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest that a signal which came at the wrong moment goes unheard, and a close while nothing
/// is waited for that has a bell.
const GLANCE: Duration = Duration::from_secs(1);

/// How one stretch of waiting ended.
#[derive(Debug)]
pub(crate) enum Stretch<T> {
    /// With what was waited for.
    Came(T),
    /// With what was waited for, which is a part of the end: nobody
    /// else has that before it is given back.
    Lent(T),
    /// Without: a signal came, or the stretch is over.
    Nothing,
}

impl<T> Stretch<T> {
    /// With what came, if anything did. A signal is none of the wait's errors.
    pub(crate) fn of<E: From<WaitError> + PartialEq>(
        came: Result<Option<T>, E>,
        raise: impl FnOnce(E) -> PyErr,
    ) -> PyResult<Self> {
        match came {
            Ok(Some(it)) => Ok(Self::Came(it)),
            Ok(None) => Ok(Self::Nothing),
            Err(error) if error == WaitError::Interrupted.into() => Ok(Self::Nothing),
            Err(error) => Err(raise(error)),
        }
    }

    /// The same, where what came is a part of the end.
    pub(crate) fn lent(self) -> Self {
        match self {
            Self::Came(it) => Self::Lent(it),
            other => other,
        }
    }
}

thread_local! {
    static INTERRUPT: RefCell<Option<Arc<Interrupt>>> = const { RefCell::new(None) };
    /// What a signal handler raised that ran during a rendezvous of this thread.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// What ends this thread's waits, if it is where it may wait, without the interpreter's lock.
pub(crate) fn interrupt() -> Option<Arc<Interrupt>> {
    INTERRUPT.with_borrow(Clone::clone)
}

/// Runs what may take its time without the interpreter's lock.
pub(crate) fn at_leisure<R: Send>(py: Python<'_>, run: impl FnOnce() -> R + Send) -> R {
    py.detach(|| {
        let interrupt = Arc::new(Interrupt::default());
        INTERRUPT.set(Some(Arc::clone(&interrupt)));
        let result = interrupt.during(run);
        INTERRUPT.set(None);
        result
    })
}

/// Runs a rendezvous without the interpreter's lock. Signal handlers
/// run meanwhile, and one that raises ends it.
pub(crate) fn meet<R: Send>(py: Python<'_>, run: impl FnOnce() -> PyResult<R> + Send) -> PyResult<R> {
    // Handlers run in the main thread alone; another that took the
    // lock at the interpreter's end would die here.
    let handlers_run_here = rustix::thread::gettid() == rustix::process::getpid();
    let interrupt =
        if handlers_run_here { Interrupt::asking(a_handler_raised) } else { Interrupt::default() };
    let result = py.detach(|| Arc::new(interrupt).during(run));
    RAISED.take().map_or(result, Err)
}

fn a_handler_raised() -> bool {
    let raised = Python::try_attach(|py| py.check_signals().err()).flatten();
    let ends = raised.is_some();
    RAISED.set(raised);
    ends
}

/// Waits in stretches, each without the lock, until something came or `timeout` is over (`None`).
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    timeout: Option<f64>,
    stretch: impl Fn(Option<Instant>) -> PyResult<Stretch<T>> + Sync,
) -> PyResult<Option<T>> {
    let end = end(timeout)?;
    let signals_come_here = rustix::thread::gettid() == rustix::process::getpid();
    wait_and_glance(py, end, signals_come_here, stretch)
}

/// As `wait`, for what `doorbell::wait::Interrupt` does not end: sleeps on descriptors alone.
pub(crate) fn wait_on_files<T: Send>(
    py: Python<'_>,
    timeout: Option<f64>,
    stretch: impl Fn(Option<Instant>) -> PyResult<Stretch<T>> + Sync,
) -> PyResult<Option<T>> {
    wait_and_glance(py, end(timeout)?, true, stretch)
}

fn wait_and_glance<T: Send>(
    py: Python<'_>,
    end: Option<Instant>,
    glances: bool,
    stretch: impl Fn(Option<Instant>) -> PyResult<Stretch<T>> + Sync,
) -> PyResult<Option<T>> {
    loop {
        let glance = glances.then(|| Instant::now() + GLANCE);
        let until = [end, glance].into_iter().flatten().min();
        match at_leisure(py, || stretch(until))? {
            Stretch::Came(it) | Stretch::Lent(it) => return Ok(Some(it)),
            Stretch::Nothing => py.check_signals()?,
        }
        if end.is_some_and(|end| end <= Instant::now()) {
            return Ok(None);
        }
    }
}

/// When a Python timeout is over: `None` and infinity are never.
fn end(timeout: Option<f64>) -> PyResult<Option<Instant>> {
    let Some(seconds) = timeout else { return Ok(None) };
    if seconds.is_nan() {
        return Err(PyValueError::new_err("the timeout is not a number"));
    }
    // Beyond the clock is never.
    Ok(Duration::try_from_secs_f64(seconds.max(0.0)).ok().and_then(|time| Instant::now().checked_add(time)))
}
