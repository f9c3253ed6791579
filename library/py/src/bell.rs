// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bells.

use crate::blocking::{self, Stretch};
use crate::error::{of_map, of_wait};
use crate::handle::{Handle, Held};
use doorbell::wait::{Adaptive, Eventfd};
use doorbell::{BellFd, Deadline, raw::BellState};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::num::NonZeroU32;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};

/// One handle of a bell. Frozen, so that one thread can ring while another waits.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Bell {
    state: Arc<BellState>,
    /// Held while a thread waits.
    waiter: Handle<doorbell::Bell<Adaptive>>,
}

impl Bell {
    pub(crate) fn at(state: &Arc<BellState>) -> Self {
        Self::of(doorbell::Bell::at(Arc::clone(state)))
    }

    fn of(mut bell: doorbell::Bell<Adaptive>) -> Self {
        bell.set_interruptible(true);
        Self { state: Arc::clone(bell.state()), waiter: Handle::new(bell) }
    }

    pub(crate) fn waiter(&self) -> PyResult<Held<'_, doorbell::Bell<Adaptive>>> {
        self.waiter.lock()
    }
}

fn count(rings: Option<NonZeroU32>) -> u32 {
    rings.map_or(0, NonZeroU32::get)
}

#[pymethods]
impl Bell {
    #[new]
    #[pyo3(signature = (eventfds = 1))]
    fn new(eventfds: usize) -> PyResult<Self> {
        Ok(Self::of(doorbell::Bell::with_eventfds(eventfds).map_err(of_map)?))
    }

    #[staticmethod]
    #[pyo3(signature = (eventfds = 1))]
    fn for_children(eventfds: usize) -> PyResult<Self> {
        Ok(Self::of(doorbell::Bell::for_children(eventfds).map_err(of_map)?))
    }

    fn ring(&self) {
        self.state.ring();
    }

    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<u32> {
        // Rings that are there cost no trip without the lock.
        if let Some(rings) = self.waiter.at_once().and_then(|mut bell| bell.try_wait()) {
            return Ok(rings.get());
        }
        let rings = self.waiter.wait(py, timeout, |bell, until| {
            Stretch::of(bell.wait_until(until.map(Deadline::at)), of_wait)
        })?;
        Ok(count(rings))
    }

    fn try_wait(&self) -> PyResult<u32> {
        // Another thread waits: there are none.
        Ok(count(self.waiter.at_once().and_then(|mut bell| bell.try_wait())))
    }

    fn clone(&self) -> PyResult<Self> {
        Ok(Self::of(self.waiter()?.clone()))
    }

    fn file(&self) -> PyResult<BellFile> {
        let bell: doorbell::Bell<Eventfd> = self.waiter()?.waiting_by();
        Ok(BellFile { file: Mutex::new(Some(bell.into_fd().map_err(of_wait)?)) })
    }

    fn set_partner(&self, partner: &Self) -> PyResult<()> {
        let partner: doorbell::Bell<doorbell::wait::Null> = doorbell::Bell::at(Arc::clone(&partner.state));
        self.waiter()?.set_partner(&partner);
        Ok(())
    }

    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = self.waiter()?.counts();
        let dict = PyDict::new(py);
        dict.set_item("spun_and_hit", counts.spun_and_hit)?;
        dict.set_item("spun_in_vain", counts.spun_in_vain)?;
        dict.set_item("slept", counts.slept)?;
        dict.set_item("woken", counts.woken)?;
        Ok(dict)
    }
}

/// Waits for any of several bells. The place of one that was rung.
#[pyfunction]
#[pyo3(signature = (bells, timeout = None))]
pub(crate) fn wait_any(
    py: Python<'_>,
    bells: Vec<Py<Bell>>,
    timeout: Option<f64>,
) -> PyResult<Option<usize>> {
    blocking::wait(py, timeout, |until| {
        let mut waiters = bells.iter().map(|bell| bell.get().waiter()).collect::<PyResult<Vec<_>>>()?;
        let mut waiters: Vec<_> = waiters.iter_mut().map(|waiter| &mut **waiter).collect();
        Stretch::of(doorbell::wait_any(&mut waiters, until.map(Deadline::at)), of_wait)
    })
}

/// A handle of a bell that is a file.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct BellFile {
    /// `None` once closed.
    file: Mutex<Option<BellFd<Eventfd>>>,
}

impl BellFile {
    fn with<R>(&self, run: impl FnOnce(&mut BellFd<Eventfd>) -> PyResult<R>) -> PyResult<R> {
        let mut file = self.file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        run(file.as_mut().ok_or_else(|| pyo3::exceptions::PyValueError::new_err("the file is closed"))?)
    }
}

#[pymethods]
impl BellFile {
    fn fileno(&self) -> PyResult<i32> {
        self.with(|file| Ok(file.as_raw_fd()))
    }

    fn heard(&self) -> PyResult<u32> {
        self.with(|file| Ok(count(file.heard().map_err(of_wait)?)))
    }

    fn close(&self) {
        self.file.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    }
}
