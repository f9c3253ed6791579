// SPDX-License-Identifier: MIT OR Apache-2.0
//! A name is a service.

use crate::blocking::{self, Stretch};
use crate::buffer::Buffer;
use crate::changes::Changes;
use crate::ends::{Ends, Parts, parts};
use crate::error::{of_rendezvous, of_send, of_wait};
use crate::handle::Handle;
use crate::locked::Locked;
use crate::rendezvous::join_options;
use crate::sender::{send, sent, try_send};
use crate::users::Users;
use doorbell::Deadline;
use doorbell::channel::{self, SendError};
use doorbell::peer::Untrusted;
use doorbell::select::Selectable;
use doorbell::service::{self, ServiceError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A name, and the clients that came to it.
#[pyclass(frozen, subclass, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Service {
    /// `None` once closed.
    service: Handle<Option<service::Service>>,
    changes: Changes,
}

impl Locked for Option<service::Service> {
    fn selectable(&mut self) -> PyResult<&mut dyn Selectable> {
        Ok(self.as_mut().ok_or_else(closed)?)
    }
}

fn closed() -> PyErr {
    PyValueError::new_err("the service is closed")
}

impl Service {
    pub(crate) fn locked(&self) -> PyResult<impl Locked + '_> {
        self.service.lock()
    }

    fn with<R>(&self, run: impl FnOnce(&mut service::Service) -> PyResult<R>) -> PyResult<R> {
        run(self.service.lock()?.as_mut().ok_or_else(closed)?)
    }

    /// Waits for what `run` gives, which may find that a client has
    /// gone, or hang up on one: a task may be waiting for it.
    fn wait<R: Send>(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        run: impl Fn(&mut service::Service, Option<Instant>) -> PyResult<Stretch<R>> + Sync,
    ) -> PyResult<Option<R>> {
        self.service.wait_on_files(py, timeout, |service, until| {
            let service = service.as_mut().ok_or_else(closed)?;
            let before = service.gone();
            let result = run(service, until);
            if service.gone() != before {
                self.changes.tell();
            }
            result
        })
    }

    /// The client of this number, if it has not gone.
    fn client(service: &service::Service, number: u64) -> Option<service::ClientId> {
        service.clients().map(|(there, _)| there).find(|there| there.number() == number)
    }

    /// As `with`, with the sending end to a client.
    fn with_sender<R>(
        &self,
        client: u64,
        run: impl FnOnce(&mut channel::Sender<Untrusted>) -> PyResult<R>,
    ) -> PyResult<R> {
        self.with(|service| {
            let sender = Self::client(service, client).and_then(|there| service.sender(there));
            run(sender.ok_or_else(|| of_send(SendError::Closed))?)
        })
    }
}

fn of_service(error: ServiceError) -> PyErr {
    match error {
        ServiceError::Rendezvous(error) => of_rendezvous(error),
        ServiceError::Wait(error) => of_wait(error),
        error => PyValueError::new_err(error.to_string()),
    }
}

#[pymethods]
impl Service {
    #[new]
    #[pyo3(signature = (name, *, capacity = 65536, most_clients = 1024, users = Users::default(), mode = None))]
    fn new(
        name: PathBuf,
        capacity: u64,
        most_clients: usize,
        users: Users,
        mode: Option<u32>,
    ) -> PyResult<Self> {
        let listen = service::ListenOptions { capacity, users: users.0, mode, most_clients };
        let service = listen.at(name).map_err(of_rendezvous)?;
        Ok(Self { service: Handle::new(Some(service)), changes: Changes::default() })
    }

    #[getter]
    fn path(&self) -> PyResult<PathBuf> {
        self.with(|service| Ok(service.path().to_owned()))
    }

    #[pyo3(signature = (timeout = None))]
    fn recv<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<(u64, Bound<'py, PyBytes>)>> {
        let came = self.wait(py, timeout, |service, until| {
            let mut message = Vec::new();
            let client = service.recv_into(&mut message, until.map(Deadline::at)).map_err(of_service)?;
            Ok(client.map_or(Stretch::Nothing, |client| Stretch::Came((client.number(), message))))
        })?;
        Ok(came.map(|(client, message)| (client, PyBytes::new(py, &message))))
    }

    #[pyo3(signature = (client, message, timeout = 0.0))]
    fn send(&self, py: Python<'_>, client: u64, message: Buffer, timeout: Option<f64>) -> PyResult<bool> {
        let message = message.bytes(py)?;
        // With room there is no trip without the lock.
        let sends = self.with_sender(client, |sender| sent(try_send(sender, &message)).map_err(of_send))?;
        if sends || timeout.is_some_and(|timeout| timeout <= 0.0) {
            return Ok(sends);
        }
        let sends = self.service.wait(py, timeout, |service, until| {
            let service = service.as_mut().ok_or_else(closed)?;
            let sender = Self::client(service, client).and_then(|there| service.sender(there));
            let sender = sender.ok_or_else(|| of_send(SendError::Closed))?;
            sender.set_interruptible(true);
            Stretch::of(sent(send(sender, &message, until)).map(|sent| sent.then_some(())), of_send)
        })?;
        Ok(sends.is_some())
    }

    fn _ends(&self, client: u64) -> PyResult<Ends> {
        self.with(|service| {
            let ends = Self::client(service, client).and_then(|there| service.ends(there));
            Ok(Ends::of(ends.ok_or_else(|| of_send(SendError::Closed))?.clone()))
        })
    }

    fn _watch(&self) -> PyResult<Vec<i32>> {
        self.with(|service| self.changes.watch(&[service.as_fd()]))
    }

    fn _watch_callers(&self) -> PyResult<Vec<i32>> {
        self.with(|service| self.changes.watch(&[service.callers()]))
    }

    fn _watch_room(&self, client: u64) -> PyResult<Vec<i32>> {
        self.with_sender(client, |sender| self.changes.watch(&[sender.file().map_err(of_wait)?]))
    }

    fn _listen_room(&self, client: u64, length: usize) -> PyResult<bool> {
        self.with_sender(client, |sender| sender.listen(length).map_err(of_wait))
    }

    #[pyo3(signature = (timeout = None))]
    fn _accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Parts>> {
        let duplex = self.wait(py, timeout, |service, until| {
            let duplex = service.accept_deadline(until.map(Deadline::at));
            Ok(duplex.map_err(of_rendezvous)?.map_or(Stretch::Nothing, Stretch::Came))
        })?;
        Ok(duplex.map(parts))
    }

    #[getter]
    fn clients(&self) -> PyResult<Vec<(u64, u32)>> {
        self.with(|service| Ok(service.clients().map(|(id, peer)| (id.number(), peer.pid)).collect()))
    }

    #[getter]
    fn turned_away(&self) -> PyResult<u64> {
        self.with(|service| Ok(service.turned_away()))
    }

    fn fileno(&self) -> PyResult<i32> {
        self.with(|service| Ok(service.as_fd().as_raw_fd()))
    }

    fn close(&self, py: Python<'_>) {
        self.service.close(py, |service| drop(service.take()));
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

/// Connects to the service of a name, and waits up to `timeout` seconds for it to be there.
#[pyfunction]
pub(crate) fn _connect(
    py: Python<'_>,
    name: PathBuf,
    timeout: f64,
    users: Users,
    most_memory: u64,
    most_eventfds: u32,
    patience: f64,
) -> PyResult<Parts> {
    let join = join_options(most_memory, most_eventfds, patience)?.host(users.0);
    // Beyond what a duration can be is for ever.
    let whole = Duration::try_from_secs_f64(timeout.max(0.0)).unwrap_or(Duration::MAX);
    let connect = || service::connect_by_timeout(&name, &join, whole).map_err(of_rendezvous);
    blocking::meet(py, connect).map(parts)
}

/// The names of this user's services.
#[pyfunction]
pub(crate) fn services() -> PyResult<Vec<String>> {
    service::names().map_err(of_rendezvous)
}
