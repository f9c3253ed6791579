// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many senders, one receiver.

use crate::blocking::Stretch;
use crate::changes::Changes;
use crate::error::{Closed, of_attach, of_gather, of_wait};
use crate::handle::Handle;
use crate::locked::Locked;
use crate::rendezvous::{Connection, Segment, Shared};
use doorbell::channel::{self, AttachError, GatherError};
use doorbell::peer::{Trust, Trusted, Untrusted};
use doorbell::select::Selectable;
use doorbell::{Deadline, WaitError, rendezvous};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::os::fd::AsRawFd;
use std::time::Instant;

/// What Python does with a gather, whomever it trusts.
trait Collect: Send + std::fmt::Debug {
    fn recv(&mut self, until: Option<Instant>) -> Result<Option<(usize, Vec<u8>)>, GatherError>;
    fn try_recv(&mut self) -> Result<Option<(usize, Vec<u8>)>, GatherError>;
    fn remove(&mut self, number: usize) -> bool;
    fn fds(&mut self) -> Result<Vec<i32>, WaitError>;
    fn watch(&mut self, changes: &Changes) -> PyResult<Vec<i32>>;
    fn listen(&mut self) -> Result<bool, WaitError>;
}

impl<T: Trust> Collect for channel::Gather<T> {
    fn recv(&mut self, until: Option<Instant>) -> Result<Option<(usize, Vec<u8>)>, GatherError> {
        Ok(self.recv_deadline(until.map(Deadline::at))?.map(|(lane, message)| (lane, message.into_vec())))
    }

    fn try_recv(&mut self) -> Result<Option<(usize, Vec<u8>)>, GatherError> {
        Ok(self.try_recv()?.map(|(lane, message)| (lane, message.into_vec())))
    }

    fn remove(&mut self, number: usize) -> bool {
        self.remove(number)
    }

    fn fds(&mut self) -> Result<Vec<i32>, WaitError> {
        Ok(self.files()?.iter().map(AsRawFd::as_raw_fd).collect())
    }

    fn watch(&mut self, changes: &Changes) -> PyResult<Vec<i32>> {
        changes.watch(&self.files().map_err(of_wait)?)
    }

    fn listen(&mut self) -> Result<bool, WaitError> {
        self.listen()
    }
}

/// Whom the senders are trusted by is known when the first lane is
/// added, and again unknown when the last is removed.
#[derive(Debug)]
enum Lanes {
    None,
    OfBoards(channel::Gather<Trusted>),
    OfSessions(channel::Gather<Untrusted>),
    Left,
}

impl Lanes {
    fn with<R>(&mut self, run: impl FnOnce(&mut dyn Collect) -> PyResult<R>) -> PyResult<R> {
        match self {
            // It has nobody to trust.
            Self::None => run(&mut channel::Gather::<Trusted>::default()),
            Self::OfBoards(gather) => run(gather),
            Self::OfSessions(gather) => run(gather),
            Self::Left => Err(PyValueError::new_err("this gather was closed")),
        }
    }

    /// Without lanes it may take those of either kind. One that was closed takes none.
    fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::OfBoards(gather) => gather.lanes() == 0,
            Self::OfSessions(gather) => gather.lanes() == 0,
            Self::Left => false,
        }
    }
}

/// The receiving ends of many lanes.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Gather {
    lanes: Handle<Lanes>,
    changes: Changes,
}

impl Locked for Lanes {
    fn selectable(&mut self) -> PyResult<&mut dyn Selectable> {
        match self {
            Self::OfBoards(gather) => Ok(gather),
            Self::OfSessions(gather) => Ok(gather),
            Self::None => Err(PyValueError::new_err("this gather has no lane to wait for")),
            Self::Left => Err(PyValueError::new_err("this gather was closed")),
        }
    }
}

impl Gather {
    pub(crate) fn locked(&self) -> PyResult<impl Locked + '_> {
        self.lanes.lock()
    }

    fn with<R>(&self, run: impl FnOnce(&mut dyn Collect) -> PyResult<R>) -> PyResult<R> {
        self.lanes.lock()?.with(run)
    }

    fn add_connection(&self, connection: &rendezvous::Connection<Untrusted>, lane: u32) -> PyResult<usize> {
        let mut lanes = self.lanes.lock()?;
        if lanes.is_empty() {
            *lanes = Lanes::OfSessions(channel::Gather::default());
        }
        let Lanes::OfSessions(gather) = &mut *lanes else { return Err(mixed(&lanes)) };
        let number = gather.add(connection, lane);
        self.added(number, |interruptible| gather.set_interruptible(interruptible))
    }

    fn add_segment(&self, segment: &rendezvous::Segment, lane: u32) -> PyResult<usize> {
        let mut lanes = self.lanes.lock()?;
        if lanes.is_empty() {
            *lanes = Lanes::OfBoards(channel::Gather::default());
        }
        let Lanes::OfBoards(gather) = &mut *lanes else { return Err(mixed(&lanes)) };
        let number = gather.add_at(segment, lane);
        self.added(number, |interruptible| gather.set_interruptible(interruptible))
    }

    fn added(
        &self,
        number: Result<usize, AttachError>,
        set_interruptible: impl FnOnce(bool),
    ) -> PyResult<usize> {
        let number = number.map_err(of_attach)?;
        // Also at the bell that came with it.
        set_interruptible(true);
        self.changes.tell();
        Ok(number)
    }
}

fn mixed(lanes: &Lanes) -> PyErr {
    PyValueError::new_err(match lanes {
        Lanes::Left => "this gather was closed",
        _ => {
            "a gather takes lanes of segments whose users are all trusted, or of connections, not \
             both; make one for each"
        }
    })
}

type Received<'py> = (usize, Bound<'py, PyBytes>);

#[pymethods]
impl Gather {
    #[new]
    fn new() -> Self {
        Self { lanes: Handle::new(Lanes::None), changes: Changes::default() }
    }

    fn add(&self, of: &Bound<'_, PyAny>, lane: u32) -> PyResult<usize> {
        let shared = match of.cast::<Connection>() {
            Ok(connection) => connection.get().shared()?,
            Err(_) => of.cast::<Segment>()?.get().shared(),
        };
        match shared {
            Shared::Connection(connection) => self.add_connection(&connection, lane),
            Shared::Segment(segment) => self.add_segment(&segment, lane),
        }
    }

    fn remove(&self, number: usize) -> PyResult<bool> {
        self.with(|gather| {
            let removed = gather.remove(number);
            self.changes.tell();
            Ok(removed)
        })
    }

    #[pyo3(signature = (timeout = None))]
    fn recv<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Option<Received<'py>>> {
        // A message that is there costs no trip without the lock.
        if let Some(received) = self.try_recv(py)? {
            return Ok(Some(received));
        }
        let received = self.lanes.wait(py, timeout, |lanes, until| {
            let raise = |error| Python::attach(|py| of_gather(py, error));
            lanes.with(|gather| Stretch::of(gather.recv(until), raise))
        })?;
        Ok(received.map(|(lane, message)| (lane, PyBytes::new(py, &message))))
    }

    fn try_recv<'py>(&self, py: Python<'py>) -> PyResult<Option<Received<'py>>> {
        // Another thread waits: there is none.
        let Some(mut lanes) = self.lanes.at_once() else { return Ok(None) };
        let received = lanes.with(|gather| gather.try_recv().map_err(|error| of_gather(py, error)))?;
        Ok(received.map(|(lane, message)| (lane, PyBytes::new(py, &message))))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Received<'py>>> {
        match self.recv(py, None) {
            Err(error) if error.is_instance_of::<Closed>(py) => Ok(None),
            result => result,
        }
    }

    fn __aiter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        py.import("doorbell.aio")?.getattr("AsyncGather")?.call1((slf,))
    }

    fn filenos(&self) -> PyResult<Vec<i32>> {
        self.with(|gather| gather.fds().map_err(of_wait))
    }

    fn listen(&self) -> PyResult<bool> {
        self.with(|gather| gather.listen().map_err(of_wait))
    }

    fn _begin_await(&self) -> PyResult<()> {
        self.changes.begin()
    }

    fn _end_await(&self) {
        self.changes.end();
    }

    fn _watch(&self) -> PyResult<Vec<i32>> {
        self.with(|gather| gather.watch(&self.changes))
    }

    fn close(&self, py: Python<'_>) {
        self.lanes.close(py, |lanes| *lanes = Lanes::Left);
        self.changes.tell();
    }

    fn _close_at_exit(&self, py: Python<'_>) {
        self.lanes.close_at_exit(py, |lanes| *lanes = Lanes::Left);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(exception.py());
    }
}
