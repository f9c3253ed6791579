// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for unlike ends at once.

use crate::bell::Bell;
use crate::blocking::{self, Stretch};
use crate::error::of_wait;
use crate::gather::Gather;
use crate::handle::Handle;
use crate::locked::Locked;
use crate::receiver::Receiver;
use crate::service::Service;
use crate::subscriber::Subscriber;
use doorbell::Deadline;
use doorbell::select::{File, Means, Selectable};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::os::fd::BorrowedFd;

/// An end that Python has, kept while it is waited for.
enum End {
    Bell(Py<Bell>),
    Receiver(Py<Receiver>),
    Gather(Py<Gather>),
    Subscriber(Py<Subscriber>),
    Service(Py<Service>),
    File(i32),
}

impl End {
    fn of(end: &Bound<'_, PyAny>) -> PyResult<Self> {
        // The ends of `doorbell.channel` and the like are made of others.
        if let Ok(made_of) = end.getattr("_native_end") {
            return Self::of(&made_of.call0()?);
        }
        Ok(if let Ok(bell) = end.cast::<Bell>() {
            Self::Bell(bell.clone().unbind())
        } else if let Ok(receiver) = end.cast::<Receiver>() {
            Self::Receiver(receiver.clone().unbind())
        } else if let Ok(gather) = end.cast::<Gather>() {
            Self::Gather(gather.clone().unbind())
        } else if let Ok(subscriber) = end.cast::<Subscriber>() {
            Self::Subscriber(subscriber.clone().unbind())
        } else if let Ok(service) = end.cast::<Service>() {
            Self::Service(service.clone().unbind())
        } else if let Ok(file) = end.extract::<i32>() {
            Self::file(file)?
        } else if let Ok(fileno) = end.call_method0("fileno") {
            Self::file(fileno.extract()?)?
        } else {
            return Err(PyTypeError::new_err(format!(
                "{} can be neither received from nor polled",
                end.get_type().name()?
            )));
        })
    }

    fn file(file: i32) -> PyResult<Self> {
        if file < 0 {
            return Err(PyValueError::new_err(format!("{file} is no descriptor")));
        }
        Ok(Self::File(file))
    }

    fn lock(&self) -> PyResult<Box<dyn Locked + '_>> {
        Ok(match self {
            Self::Bell(bell) => Box::new(bell.get().waiter()?),
            Self::Receiver(receiver) => Box::new(receiver.get().locked()?),
            Self::Gather(gather) => Box::new(gather.get().locked()?),
            Self::Subscriber(subscriber) => Box::new(subscriber.get().locked()?),
            Self::Service(service) => Box::new(service.get().locked()?),
            Self::File(file) => {
                // SAFETY: the caller's descriptor, open while it waits; if it is not, poll says so.
                let file = unsafe { BorrowedFd::borrow_raw(*file) };
                Box::new(Descriptor(File::readable(file)))
            }
        })
    }
}

struct Descriptor<'a>(File<BorrowedFd<'a>>);

impl Locked for Descriptor<'_> {
    fn selectable(&mut self) -> PyResult<&mut dyn Selectable> {
        Ok(&mut self.0)
    }
}

/// Waits for unlike ends.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Select(Handle<doorbell::Select>);

#[pymethods]
impl Select {
    #[new]
    #[pyo3(signature = (*, by_files = false))]
    fn new(by_files: bool) -> Self {
        Self(Handle::new(if by_files { doorbell::Select::by_files() } else { doorbell::Select::new() }))
    }

    #[getter]
    fn by_files(&self) -> PyResult<bool> {
        Ok(self.0.lock()?.means() != Means::Futexes)
    }

    #[pyo3(signature = (ends, timeout = None))]
    fn wait<'py>(
        &self,
        py: Python<'py>,
        ends: Vec<Bound<'py, PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let all = ends.iter().map(End::of).collect::<PyResult<Vec<_>>>()?;
        if all.is_empty() {
            return Err(PyValueError::new_err("there is no end to wait for"));
        }
        let place = blocking::wait_on_files(py, timeout, |until| {
            let mut locked = all.iter().map(End::lock).collect::<PyResult<Vec<_>>>()?;
            let mut ends = locked.iter_mut().map(|end| end.selectable()).collect::<PyResult<Vec<_>>>()?;
            Stretch::of(self.0.lock()?.wait(&mut ends, until.map(Deadline::at)), of_wait)
        })?;
        Ok(place.and_then(|place| ends.into_iter().nth(place)))
    }
}
