// SPDX-License-Identifier: MIT OR Apache-2.0
//! One subscription to a broadcast.

use crate::blocking::{self, Stretch};
use crate::changes::Changes;
use crate::error::{Closed, of_join, of_receive, of_wait};
use crate::handle::Handle;
use crate::locked::Locked;
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
        let hearing = Hearing { subscriber: Box::new(subscriber), message: Vec::new() };
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
        let heard = blocking::wait(py, timeout, |until| {
            self.with(|Hearing { subscriber, message }| match subscriber.recv(message, until) {
                Ok(Some(missed)) => Ok(Stretch::Came((message.clone(), missed))),
                Ok(None) | Err(RecvError::Wait(WaitError::Interrupted)) => Ok(Stretch::Nothing),
                Err(error) => Err(of_receive(error)),
            })
        })?;
        Ok(heard.map(|(message, missed)| (PyBytes::new(py, &message), missed)))
    }

    fn try_recv<'py>(&self, py: Python<'py>) -> PyResult<Option<Heard<'py>>> {
        self.with(|Hearing { subscriber, message }| {
            let missed = subscriber.try_recv(message).map_err(of_receive)?;
            Ok(missed.map(|missed| (PyBytes::new(py, message), missed)))
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

    fn close(&self) -> PyResult<()> {
        self.subscriber.lock()?.take();
        self.changes.tell();
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.close()
    }
}
