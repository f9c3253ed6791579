// SPDX-License-Identifier: MIT OR Apache-2.0
//! The publishing end of a broadcast: one sender, many receivers.

use crate::blocking::{self, Stretch};
use crate::buffer::Buffer;
use crate::error::{of_join, of_map, of_send};
use crate::handle::Handle;
use crate::rendezvous::Connection;
use crate::sender::sent;
use crate::subscriber::{Subscriber, closed};
use doorbell::Deadline;
use doorbell::channel::broadcast::{self, Draft, Ended, WhenSlow};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

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
    publisher: Handle<Option<broadcast::Publisher>>,
}

impl Publisher {
    fn with<R>(&self, run: impl FnOnce(&mut broadcast::Publisher) -> PyResult<R>) -> PyResult<R> {
        run(self.publisher.lock()?.as_mut().ok_or_else(closed)?)
    }

    fn publish_parts(
        &self,
        py: Python<'_>,
        length: usize,
        parts: &[(usize, Buffer)],
        timeout: Option<f64>,
    ) -> PyResult<bool> {
        let parts =
            parts.iter().map(|(at, part)| Ok((*at, part.bytes(py)?))).collect::<PyResult<Vec<_>>>()?;
        let write = |draft: &mut Draft<'_>| {
            for (at, part) in &parts {
                let mut at = *at;
                part.in_pieces(|piece| at += draft.write(at, piece));
            }
        };
        let published = self.publisher.wait(py, timeout, |publisher, until| {
            let publisher = publisher.as_mut().ok_or_else(closed)?;
            let published = sent(publisher.publish_in_place(length, until.map(Deadline::at), write));
            Stretch::of(published.map(|published| published.then_some(())), of_send)
        })?;
        Ok(published.is_some())
    }
}

#[pymethods]
impl Publisher {
    #[new]
    #[pyo3(signature = (capacity, *, history = 0))]
    fn new(capacity: u64, history: usize) -> PyResult<Self> {
        let mut publisher = broadcast::Publisher::new(capacity).map_err(of_map)?;
        publisher.set_history(history);
        publisher.set_interruptible(true);
        Ok(Self { publisher: Handle::new(Some(publisher)) })
    }

    #[pyo3(signature = (connection, lane, when_slow = "hold back"))]
    fn admit(&self, py: Python<'_>, connection: &Connection, lane: u32, when_slow: &str) -> PyResult<u64> {
        let (slow, peer) = (self::when_slow(when_slow)?, connection.peers_connection()?);
        // The peer may take long to receive the log: meanwhile nothing is locked that a thread with
        // the interpreter's lock waits for.
        blocking::at_leisure(py, || {
            self.with(|publisher| publisher.admit(&peer, lane, slow).map_err(of_join))
        })
    }

    #[pyo3(signature = (when_slow = "hold back"))]
    fn subscribe(&self, when_slow: &str) -> PyResult<Subscriber> {
        let slow = self::when_slow(when_slow)?;
        self.with(|publisher| Subscriber::of(publisher.subscribe(slow)))
    }

    #[pyo3(signature = (message, timeout = None))]
    fn publish(&self, py: Python<'_>, message: Buffer, timeout: Option<f64>) -> PyResult<bool> {
        let length = message.length();
        self.publish_parts(py, length, &[(0, message)], timeout)
    }

    /// Publishes one message of `length` bytes, with these parts at
    /// these places. The bytes between them are unspecified.
    #[pyo3(signature = (length, parts, timeout = None))]
    fn _publish_parts(
        &self,
        py: Python<'_>,
        length: usize,
        parts: Vec<(usize, Buffer)>,
        timeout: Option<f64>,
    ) -> PyResult<bool> {
        self.publish_parts(py, length, &parts, timeout)
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

    fn close(&self, py: Python<'_>) {
        self.publisher.close(py, |publisher| drop(publisher.take()));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(exception.py());
    }
}
