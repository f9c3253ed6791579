// SPDX-License-Identifier: MIT OR Apache-2.0
//! A name is a service.

use crate::blocking::{self, Stretch};
use crate::buffer::Buffer;
use crate::error::{of_rendezvous, of_send, of_wait};
use crate::handle::Handle;
use crate::locked::Locked;
use crate::receiver::Receiver;
use crate::sender::Sender;
use doorbell::channel::SendError;
use doorbell::select::Selectable;
use doorbell::service::{self, ClientId, ServiceError};
use doorbell::{Deadline, rendezvous};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A name, and the clients that came to it.
#[pyclass(frozen, subclass, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Service(Handle<Option<Serving>>);

#[derive(Debug)]
struct Serving {
    service: service::Service,
    /// Those whom Python knows by number.
    known: Vec<ClientId>,
}

impl Locked for Option<Serving> {
    fn selectable(&mut self) -> PyResult<&mut dyn Selectable> {
        Ok(&mut self.as_mut().ok_or_else(closed)?.service)
    }
}

fn closed() -> PyErr {
    PyValueError::new_err("the service is closed")
}

impl Service {
    pub(crate) fn locked(&self) -> PyResult<impl Locked + '_> {
        self.0.lock()
    }

    fn with<R>(&self, run: impl FnOnce(&mut Serving) -> PyResult<R>) -> PyResult<R> {
        run(self.0.lock()?.as_mut().ok_or_else(closed)?)
    }
}

fn of_service(error: ServiceError) -> PyErr {
    match error {
        ServiceError::Rendezvous(error) => of_rendezvous(error),
        ServiceError::Wait(error) => of_wait(error),
        error => PyValueError::new_err(error.to_string()),
    }
}

/// The ends, and the other process's number.
type Ends = (Sender, Receiver, u32);

fn ends(duplex: service::Duplex) -> Ends {
    let process = duplex.peer().pid;
    let (sender, receiver) = duplex.split();
    (Sender::over(sender), Receiver::over(receiver), process)
}

#[pymethods]
impl Service {
    #[new]
    #[pyo3(signature = (name, *, capacity = 65536, most_clients = 1024))]
    fn new(name: PathBuf, capacity: u64, most_clients: usize) -> PyResult<Self> {
        let listen = service::Listen { capacity, most_clients, ..service::Listen::default() };
        let service = listen.at(name).map_err(of_rendezvous)?;
        Ok(Self(Handle::new(Some(Serving { service, known: Vec::new() }))))
    }

    #[pyo3(signature = (timeout = None))]
    fn recv<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<(u64, Bound<'py, PyBytes>)>> {
        let came = blocking::wait(py, timeout, |until| {
            self.with(|serving| {
                let mut message = Vec::new();
                let deadline = until.map(Deadline::at);
                let client = serving.service.recv_into(&mut message, deadline).map_err(of_service)?;
                Ok(client.map_or(Stretch::Nothing, |client| {
                    let Serving { service, known } = serving;
                    if !known.contains(&client) {
                        known.retain(|known| service.clients().any(|(there, _)| there == *known));
                        known.push(client);
                    }
                    Stretch::Came((client.number(), message))
                }))
            })
        })?;
        Ok(came.map(|(client, message)| (client, PyBytes::new(py, &message))))
    }

    fn send(&self, py: Python<'_>, client: u64, message: Buffer) -> PyResult<bool> {
        let message = message.copy(py)?;
        self.with(|serving| {
            let known = serving.known.iter().find(|known| known.number() == client).copied();
            match known.map_or(Err(SendError::Closed), |known| serving.service.send(known, &message)) {
                Ok(()) => Ok(true),
                Err(SendError::Full) => Ok(false),
                Err(error) => Err(of_send(error)),
            }
        })
    }

    #[pyo3(signature = (timeout = None))]
    fn _accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Ends>> {
        let duplex = blocking::wait(py, timeout, |until| {
            self.with(|serving| {
                let duplex = serving.service.accept_deadline(until.map(Deadline::at));
                Ok(duplex.map_err(of_rendezvous)?.map_or(Stretch::Nothing, Stretch::Came))
            })
        })?;
        Ok(duplex.map(ends))
    }

    #[getter]
    fn clients(&self) -> PyResult<Vec<(u64, u32)>> {
        self.with(|serving| Ok(serving.service.clients().map(|(id, peer)| (id.number(), peer.pid)).collect()))
    }

    #[getter]
    fn turned_away(&self) -> PyResult<u64> {
        self.with(|serving| Ok(serving.service.turned_away()))
    }

    fn fileno(&self) -> PyResult<i32> {
        self.with(|serving| Ok(serving.service.as_fd().as_raw_fd()))
    }

    fn close(&self) -> PyResult<()> {
        self.0.lock()?.take();
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

/// Connects to the service of a name, and waits up to `timeout` seconds for it to be there.
#[pyfunction]
pub(crate) fn _connect(py: Python<'_>, name: PathBuf, timeout: f64) -> PyResult<Ends> {
    let end = Duration::try_from_secs_f64(timeout.max(0.0)).ok();
    let end = end.and_then(|timeout| Instant::now().checked_add(timeout));
    // In stretches, between which signals are heard.
    const GLANCE: Duration = Duration::from_millis(500);
    loop {
        let left = end.map_or(GLANCE, |end| end.saturating_duration_since(Instant::now()).min(GLANCE));
        match py.detach(|| service::connect_timeout(&name, left)) {
            Err(rendezvous::RendezvousError::NoOwner) if end.is_none_or(|end| Instant::now() < end) => {
                py.check_signals()?;
            }
            result => return result.map(ends).map_err(of_rendezvous),
        }
    }
}

/// The names of this user's services.
#[pyfunction]
pub(crate) fn services() -> PyResult<Vec<String>> {
    service::names().map_err(of_rendezvous)
}
