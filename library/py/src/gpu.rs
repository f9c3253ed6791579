// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for events of a GPU.

use crate::blocking::Stretch;
use crate::error::Error;
use crate::handle::Handle;
use doorbell::Deadline;
use doorbell::gpu::{self, Event, GpuError, Spin};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

fn of_gpu(error: GpuError) -> PyErr {
    let message = error.to_string();
    match error {
        GpuError::Os { errno, .. } => PyOSError::new_err((errno.raw_os_error(), message)),
        _ => Error::new_err(message),
    }
}

/// Waits for one event at a time; other threads that ask meanwhile
/// wait their turn, and no longer than they said.
#[pyclass(frozen, module = "doorbell.gpu", name = "_Waiter")]
#[derive(Debug)]
pub(crate) struct GpuWaiter {
    waiter: Handle<gpu::Waiter>,
}

#[pymethods]
impl GpuWaiter {
    #[new]
    #[pyo3(signature = (spin = None))]
    fn new(spin: Option<f64>) -> PyResult<Self> {
        let mut waiter = gpu::Waiter::new().map_err(of_gpu)?;
        if let Some(seconds) = spin {
            let spin = Duration::try_from_secs_f64(seconds);
            let spin = spin.map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
            waiter.set_spin(Spin::For(spin));
        }
        Ok(Self { waiter: Handle::new(waiter) })
    }

    /// The package's `Waiter` keeps the object that the event belongs to meanwhile.
    #[pyo3(signature = (event, timeout = None))]
    fn wait(&self, py: Python<'_>, event: usize, timeout: Option<f64>) -> PyResult<bool> {
        let begun = AtomicBool::new(false);
        let came = self.waiter.wait_on_files(py, timeout, |waiter, until| {
            // SAFETY: the caller names an event of the driver, and keeps it.
            let event = unsafe { Event::from_raw(event as gpu::driver::Handle) };
            let until = until.map(Deadline::at);
            let again = begun.swap(true, Ordering::Relaxed);
            let done = if again { waiter.resume(&event, until) } else { waiter.wait(&event, until) };
            let done = done.map_err(of_gpu)?;
            Ok(if done { Stretch::Came(()) } else { Stretch::Nothing })
        })?;
        Ok(came.is_some())
    }

    /// Hits, spins in vain, sleeps, and those of them that a look ended.
    fn counts(&self, py: Python<'_>) -> PyResult<(u64, u64, u64, u64)> {
        let counts = self.waiter.wait_on_files(py, None, |waiter, _| Ok(Stretch::Came(waiter.counts())))?;
        let counts = counts.unwrap_or_default();
        Ok((counts.hits, counts.in_vain, counts.slept, counts.rescued))
    }
}

/// Nothing panics while it is held, and what it guards is whole between two calls.
fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Any number of events behind one descriptor.
#[pyclass(frozen, module = "doorbell.gpu", name = "_Events")]
#[derive(Debug)]
pub(crate) struct GpuEvents {
    events: Mutex<gpu::Events>,
}

#[pymethods]
impl GpuEvents {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self { events: Mutex::new(gpu::Events::new().map_err(of_gpu)?) })
    }

    fn fileno(&self) -> i32 {
        held(&self.events).as_raw_fd()
    }

    /// The package's `Events` keeps the object that the event belongs
    /// to until it was told or removed.
    fn add(&self, event: usize, key: u64) -> PyResult<()> {
        // SAFETY: the caller names an event of the driver, and keeps it for so long.
        unsafe {
            let event = Event::from_raw(event as gpu::driver::Handle);
            held(&self.events).add(&event, key).map_err(of_gpu)
        }
    }

    fn remove(&self, key: u64) {
        held(&self.events).remove(key);
    }

    /// Each that ended, with what went wrong.
    fn done(&self) -> PyResult<Vec<(u64, Option<String>)>> {
        let done = held(&self.events).done().map_err(of_gpu)?;
        Ok(done
            .into_iter()
            .map(|done| (done.key, done.result.err().map(|error| error.to_string())))
            .collect())
    }
}
