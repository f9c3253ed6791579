// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends that are sent to another process.

use crate::blocking::{self, Stretch};
use crate::error::of_rendezvous;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::users::Users;
use doorbell::rendezvous::Join;
use doorbell::service;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a `Duplex` of Python is made of: the ends, the other
/// process's number, and the way for ends that are sent.
pub(crate) type Parts = (Sender, Receiver, u32, Ends);

pub(crate) fn parts(duplex: service::Duplex) -> Parts {
    let (process, ends) = (duplex.peer().pid, Ends::of(duplex.ends().clone()));
    let (sender, receiver) = duplex.split();
    (Sender::over(sender), Receiver::over(receiver), process, ends)
}

/// An end that nobody has opened yet.
#[pyclass(frozen, name = "_Unopened", module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Unopened(Mutex<Option<service::Unopened>>);

impl Unopened {
    fn of(end: service::Unopened) -> Self {
        Self(Mutex::new(Some(end)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<service::Unopened>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> PyResult<service::Unopened> {
        let gone = || PyValueError::new_err("the end was sent, opened or closed already");
        self.lock().take().ok_or_else(gone)
    }
}

#[pymethods]
impl Unopened {
    fn open(&self, users: Users) -> PyResult<Parts> {
        self.take()?.open_by(&Join::default().host(users.0)).map(parts).map_err(of_rendezvous)
    }

    fn close(&self) {
        self.lock().take();
    }
}

/// The way by which ends go to another process, and come from it.
#[pyclass(frozen, name = "_Ends", module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Ends(Mutex<Option<service::Ends>>);

impl Ends {
    pub(crate) fn of(ends: service::Ends) -> Self {
        Self(Mutex::new(Some(ends)))
    }

    fn ends(&self) -> PyResult<service::Ends> {
        let ends = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ends.ok_or_else(|| PyValueError::new_err("the connection is closed"))
    }
}

#[pymethods]
impl Ends {
    fn send(&self, end: &Unopened) -> PyResult<()> {
        let sent = self.ends()?.send(end.take()?);
        sent.map_err(|refused| {
            *end.lock() = Some(refused.end);
            of_rendezvous(refused.error)
        })
    }

    fn recv(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Unopened>> {
        let ends = self.ends()?;
        let end = blocking::wait_on_files(py, timeout, |until| {
            let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            Ok(ends.recv_timeout(left).map_err(of_rendezvous)?.map_or(Stretch::Nothing, Stretch::Came))
        })?;
        Ok(end.map(Unopened::of))
    }

    fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Both directions to whoever opens the end beside them.
#[pyfunction]
pub(crate) fn _pair(capacity: u64) -> PyResult<(Parts, Unopened)> {
    let (duplex, end) = service::pair(capacity).map_err(of_rendezvous)?;
    Ok((parts(duplex), Unopened::of(end)))
}
