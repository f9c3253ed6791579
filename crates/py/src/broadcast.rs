// SPDX-License-Identifier: MIT OR Apache-2.0
//! One sender, many receivers.

use crate::bell::lock;
use crate::blocking::{self, Stretch};
use crate::changes::Changes;
use crate::error::{Closed, of_join, of_map, of_receive, of_send, of_wait};
use crate::locked::Locked;
use crate::rendezvous::Connection;
use doorbell::channel::broadcast::{self, Ended, JoinError, WhenSlow};
use doorbell::channel::{RecvError, SendError};
use doorbell::peer::{Trust, Untrusted};
use doorbell::select::Selectable;
use doorbell::{Deadline, WaitError, rendezvous};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::time::Instant;

fn closed() -> PyErr {
    PyValueError::new_err("this end of the broadcast was closed")
}

fn when_slow(name: &str) -> PyResult<WhenSlow> {
    match name {
        "hold back" => Ok(WhenSlow::HoldBack),
        "drop" => Ok(WhenSlow::Drop),
        "gap" => Ok(WhenSlow::Gap),
        _ => Err(PyValueError::new_err(format!(
            "{name:?} is not what can happen to a slow subscriber: \"hold back\", \"drop\" or \"gap\""
        ))),
    }
}

/// The publishing end of a broadcast.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Publisher {
    /// `None` once closed.
    publisher: Mutex<Option<broadcast::Publisher>>,
}

impl Publisher {
    fn with<R>(&self, run: impl FnOnce(&mut broadcast::Publisher) -> PyResult<R>) -> PyResult<R> {
        run(lock(&self.publisher)?.as_mut().ok_or_else(closed)?)
    }

    pub(crate) fn admit_to(
        &self,
        connection: &rendezvous::Connection<Untrusted>,
        lane: u32,
        slow: WhenSlow,
    ) -> PyResult<u64> {
        self.with(|publisher| publisher.admit(connection, lane, slow).map_err(of_join))
    }
}

#[pymethods]
impl Publisher {
    #[new]
    fn new(capacity: u64) -> PyResult<Self> {
        let mut publisher = broadcast::Publisher::new(capacity).map_err(of_map)?;
        publisher.set_interruptible(true);
        Ok(Self { publisher: Mutex::new(Some(publisher)) })
    }

    #[pyo3(signature = (connection, lane, when_slow = "hold back"))]
    fn admit(&self, py: Python<'_>, connection: &Connection, lane: u32, when_slow: &str) -> PyResult<u64> {
        connection.admitted_by(py, self, lane, self::when_slow(when_slow)?)
    }

    #[pyo3(signature = (when_slow = "hold back"))]
    fn subscribe(&self, when_slow: &str) -> PyResult<Subscriber> {
        let slow = self::when_slow(when_slow)?;
        self.with(|publisher| Subscriber::of(publisher.subscribe(slow)))
    }

    #[pyo3(signature = (message, timeout = None))]
    fn publish(&self, py: Python<'_>, message: PyBuffer<u8>, timeout: Option<f64>) -> PyResult<bool> {
        let message = message.to_vec(py)?;
        let published = blocking::wait(py, timeout, |until| {
            self.with(|publisher| match publisher.publish_deadline(&message, until.map(Deadline::at)) {
                Ok(()) => Ok(Stretch::Came(())),
                Err(SendError::Full | SendError::TimedOut | SendError::Wait(WaitError::Interrupted)) => {
                    Ok(Stretch::Nothing)
                }
                Err(error) => Err(of_send(error)),
            })
        })?;
        Ok(published.is_some())
    }

    fn ended(&self) -> PyResult<Vec<(u64, &'static str)>> {
        let how = |ended: &Ended| match ended {
            Ended::Left => "left",
            Ended::Gone(_) => "gone",
            Ended::Dropped => "dropped",
            _ => "violation",
        };
        self.with(|publisher| {
            Ok(publisher.ended().iter().map(|(number, ended)| (*number, how(ended))).collect())
        })
    }

    #[getter]
    fn subscribers(&self) -> PyResult<usize> {
        self.with(|publisher| Ok(publisher.subscribers()))
    }

    #[getter]
    fn longest(&self) -> PyResult<u64> {
        self.with(|publisher| Ok(publisher.longest()))
    }

    fn close(&self) -> PyResult<()> {
        lock(&self.publisher)?.take();
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
    subscriber: Mutex<Option<Hearing>>,
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
        lock(&self.subscriber)
    }

    pub(crate) fn join(connection: &rendezvous::Connection<Untrusted>, lane: u32) -> PyResult<Self> {
        Self::of(broadcast::Subscriber::join(connection, lane))
    }

    fn of<T: Trust>(subscriber: Result<broadcast::Subscriber<T>, JoinError>) -> PyResult<Self> {
        let mut subscriber = subscriber.map_err(of_join)?;
        subscriber.set_interruptible(true);
        let hearing = Hearing { subscriber: Box::new(subscriber), message: Vec::new() };
        Ok(Self { subscriber: Mutex::new(Some(hearing)), changes: Changes::default() })
    }

    fn with<R>(&self, run: impl FnOnce(&mut Hearing) -> PyResult<R>) -> PyResult<R> {
        run(lock(&self.subscriber)?.as_mut().ok_or_else(closed)?)
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
        lock(&self.subscriber)?.take();
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
