// SPDX-License-Identifier: MIT OR Apache-2.0
//! One subscription to a broadcast.

use crate::blocking::Stretch;
use crate::changes::Changes;
use crate::error::{Closed, of_join, of_receive, of_wait};
use crate::handle::Handle;
use crate::locked::Locked;
use crate::steps::{Steps, Window};
use doorbell::channel::RecvError;
use doorbell::channel::broadcast::{self, JoinError};
use doorbell::peer::Trust;
use doorbell::select::Selectable;
use doorbell::{Deadline, WaitError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::os::fd::AsRawFd;
use std::time::Instant;

pub(crate) fn closed() -> PyErr {
    PyValueError::new_err("this end of the broadcast was closed")
}

/// What Python does with a subscriber, whomever it trusts.
trait Hear: Selectable + Send + std::fmt::Debug {
    fn recv(&mut self, to: &mut Vec<u8>, until: Option<Instant>) -> Result<Option<u64>, RecvError>;
    fn try_recv(&mut self, to: &mut Vec<u8>) -> Result<Option<u64>, RecvError>;
    fn fd(&mut self) -> Result<i32, WaitError>;
    fn listen(&mut self) -> Result<bool, WaitError>;
    fn watch(&mut self, changes: &Changes) -> PyResult<Vec<i32>>;
}

impl<T: Trust> Hear for broadcast::Subscriber<T> {
    fn recv(&mut self, to: &mut Vec<u8>, until: Option<Instant>) -> Result<Option<u64>, RecvError> {
        self.recv_into_deadline(to, until.map(Deadline::at))
    }

    fn try_recv(&mut self, to: &mut Vec<u8>) -> Result<Option<u64>, RecvError> {
        self.try_recv_into(to)
    }

    fn fd(&mut self) -> Result<i32, WaitError> {
        Ok(self.file()?.as_raw_fd())
    }

    fn listen(&mut self) -> Result<bool, WaitError> {
        self.listen()
    }

    fn watch(&mut self, changes: &Changes) -> PyResult<Vec<i32>> {
        changes.watch(&[self.file().map_err(of_wait)?])
    }
}

/// One subscription to a broadcast.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Subscriber {
    /// `None` once closed.
    subscriber: Handle<Option<Hearing>>,
    changes: Changes,
}

#[derive(Debug)]
struct Hearing {
    subscriber: Box<dyn Hear>,
    /// Where messages are copied to.
    message: Vec<u8>,
    /// Of a publisher that keeps a pace, if that is to be made use of.
    steps: Option<Steps>,
}

/// So many looks at the log before others of this CPU get their turn.
const LOOKS_PER_YIELD: u32 = 64;

impl Hearing {
    /// Waits for the next message: asleep, but for a short spin when it is due.
    fn recv(&mut self, until: Option<Instant>) -> Result<Option<u64>, RecvError> {
        let missed = match self.spin_when_due(until)? {
            None => self.subscriber.recv(&mut self.message, until)?,
            missed => missed,
        };
        if let (Some(_), Some(steps)) = (missed, &mut self.steps) {
            steps.came(Instant::now());
        }
        Ok(missed)
    }

    fn spin_when_due(&mut self, until: Option<Instant>) -> Result<Option<u64>, RecvError> {
        let Some(steps) = &mut self.steps else { return Ok(None) };
        let Some(Window { sleep_until, spin_until }) = steps.window() else { return Ok(None) };
        if until.is_some_and(|until| until <= spin_until) {
            return Ok(None);
        }
        let now = Instant::now();
        if now >= spin_until {
            return Ok(None);
        }
        if now < sleep_until {
            let early = self.subscriber.recv(&mut self.message, Some(sleep_until))?;
            steps.slept_until(sleep_until, Instant::now());
            if early.is_some() {
                return Ok(early);
            }
        }
        while Instant::now() < spin_until {
            for _ in 0..LOOKS_PER_YIELD {
                let missed = self.subscriber.try_recv(&mut self.message)?;
                if missed.is_some() {
                    return Ok(missed);
                }
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        }
        Ok(None)
    }
}

impl Locked for Option<Hearing> {
    fn selectable(&mut self) -> PyResult<&mut dyn Selectable> {
        Ok(&mut *self.as_mut().ok_or_else(closed)?.subscriber)
    }
}

impl Subscriber {
    pub(crate) fn locked(&self) -> PyResult<impl Locked + '_> {
        self.subscriber.lock()
    }

    pub(crate) fn of<T: Trust>(subscriber: Result<broadcast::Subscriber<T>, JoinError>) -> PyResult<Self> {
        let mut subscriber = subscriber.map_err(of_join)?;
        subscriber.set_interruptible(true);
        let hearing = Hearing { subscriber: Box::new(subscriber), message: Vec::new(), steps: None };
        Ok(Self { subscriber: Handle::new(Some(hearing)), changes: Changes::default() })
    }

    fn with<R>(&self, run: impl FnOnce(&mut Hearing) -> PyResult<R>) -> PyResult<R> {
        run(self.subscriber.lock()?.as_mut().ok_or_else(closed)?)
    }
}

type Heard<'py> = (Bound<'py, PyBytes>, u64);

#[pymethods]
impl Subscriber {
    #[pyo3(signature = (timeout = None))]
    fn recv<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Option<Heard<'py>>> {
        // A message that is there costs no trip without the lock.
        if let Some(heard) = self.try_recv(py)? {
            return Ok(Some(heard));
        }
        let heard = self.subscriber.wait(py, timeout, |hearing, until| {
            let hearing = hearing.as_mut().ok_or_else(closed)?;
            let missed = hearing.recv(until);
            let heard = |missed| (std::mem::take(&mut hearing.message), missed);
            Stretch::of(missed.map(|missed| missed.map(heard)), of_receive)
        })?;
        Ok(heard.map(|(message, missed)| (PyBytes::new(py, &message), missed)))
    }

    fn try_recv<'py>(&self, py: Python<'py>) -> PyResult<Option<Heard<'py>>> {
        // Another thread waits: there is none.
        let Some(mut hearing) = self.subscriber.at_once() else { return Ok(None) };
        let Hearing { subscriber, message, steps } = hearing.as_mut().ok_or_else(closed)?;
        let missed = subscriber.try_recv(message).map_err(of_receive)?;
        if let (Some(_), Some(steps)) = (missed, steps) {
            steps.was_there();
        }
        Ok(missed.map(|missed| (PyBytes::new(py, message), missed)))
    }

    /// Whether a publisher that keeps a pace is awaited with a short
    /// spin when its next message is due.
    fn _set_paced(&self, paced: bool) -> PyResult<()> {
        self.with(|hearing| {
            hearing.steps = paced.then(Steps::default);
            Ok(())
        })
    }

    fn fileno(&self) -> PyResult<i32> {
        self.with(|hearing| hearing.subscriber.fd().map_err(of_wait))
    }

    fn listen(&self) -> PyResult<bool> {
        self.with(|hearing| hearing.subscriber.listen().map_err(of_wait))
    }

    fn _begin_await(&self) -> PyResult<()> {
        self.changes.begin()
    }

    fn _end_await(&self) {
        self.changes.end();
    }

    fn _watch(&self) -> PyResult<Vec<i32>> {
        self.with(|hearing| hearing.subscriber.watch(&self.changes))
    }

    fn __aiter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        py.import("doorbell.aio")?.getattr("AsyncSubscriber")?.call1((slf,))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Heard<'py>>> {
        match self.recv(py, None) {
            Err(error) if error.is_instance_of::<Closed>(py) => Ok(None),
            result => result,
        }
    }

    fn close(&self, py: Python<'_>) {
        self.subscriber.close(py, |hearing| drop(hearing.take()));
        self.changes.tell();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(exception.py());
    }
}
