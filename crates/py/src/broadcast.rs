// SPDX-License-Identifier: MIT OR Apache-2.0
//! One sender, many receivers.

use crate::bell::lock;
use crate::blocking::{self, Stretch};
use crate::error::{Closed, of_join, of_map, of_receive, of_send};
use crate::meeting::Session;
use doorbell::channel::broadcast::{self, Ended, JoinError, WhenSlow};
use doorbell::channel::{RecvError, SendError};
use doorbell::peer::{Trust, Untrusted};
use doorbell::{Deadline, WaitError, meeting};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
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
        session: &meeting::Session<Untrusted>,
        lane: u32,
        slow: WhenSlow,
    ) -> PyResult<u64> {
        self.with(|publisher| publisher.admit(session, lane, slow).map_err(of_join))
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

    #[pyo3(signature = (session, lane, when_slow = "hold back"))]
    fn admit(&self, session: &Session, lane: u32, when_slow: &str) -> PyResult<u64> {
        session.admitted_by(self, lane, self::when_slow(when_slow)?)
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
                Err(SendError::Full | SendError::Wait(WaitError::Interrupted)) => Ok(Stretch::Nothing),
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
trait Hear: Send + std::fmt::Debug {
    fn receive(&mut self, to: &mut Vec<u8>, until: Option<Instant>) -> Result<Option<u64>, RecvError>;
}

impl<T: Trust> Hear for broadcast::Subscriber<T> {
    fn receive(&mut self, to: &mut Vec<u8>, until: Option<Instant>) -> Result<Option<u64>, RecvError> {
        self.recv_into_deadline(to, until.map(Deadline::at))
    }
}

/// One subscription to a broadcast.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Subscriber {
    /// `None` once closed.
    subscriber: Mutex<Option<Hearing>>,
}

#[derive(Debug)]
struct Hearing {
    subscriber: Box<dyn Hear>,
    /// Where messages are copied to.
    message: Vec<u8>,
}

impl Subscriber {
    pub(crate) fn join(session: &meeting::Session<Untrusted>, lane: u32) -> PyResult<Self> {
        Self::of(broadcast::Subscriber::join(session, lane))
    }

    fn of<T: Trust>(subscriber: Result<broadcast::Subscriber<T>, JoinError>) -> PyResult<Self> {
        let mut subscriber = subscriber.map_err(of_join)?;
        subscriber.set_interruptible(true);
        let hearing = Hearing { subscriber: Box::new(subscriber), message: Vec::new() };
        Ok(Self { subscriber: Mutex::new(Some(hearing)) })
    }
}

type Heard<'py> = (Bound<'py, PyBytes>, u64);

#[pymethods]
impl Subscriber {
    #[pyo3(signature = (timeout = None))]
    fn receive<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Option<Heard<'py>>> {
        let heard = blocking::wait(py, timeout, |until| {
            let mut hearing = lock(&self.subscriber)?;
            let Hearing { subscriber, message } = hearing.as_mut().ok_or_else(closed)?;
            match subscriber.receive(message, until) {
                Ok(Some(missed)) => Ok(Stretch::Came((message.clone(), missed))),
                Ok(None) | Err(RecvError::Wait(WaitError::Interrupted)) => Ok(Stretch::Nothing),
                Err(error) => Err(of_receive(error)),
            }
        })?;
        Ok(heard.map(|(message, missed)| (PyBytes::new(py, &message), missed)))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Heard<'py>>> {
        match self.receive(py, None) {
            Err(error) if error.is_instance_of::<Closed>(py) => Ok(None),
            result => result,
        }
    }

    fn close(&self) -> PyResult<()> {
        lock(&self.subscriber)?.take();
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
