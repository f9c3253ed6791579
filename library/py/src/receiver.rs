// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving end of a lane, and messages that are read where they lie.

use crate::blocking::Stretch;
use crate::changes::Changes;
use crate::error::{Closed, closed, of_attach, of_receive, of_wait};
use crate::handle::Handle;
use crate::lending::Lending;
use crate::locked::Locked;
use crate::place::{Access, Place};
use doorbell::Deadline;
use doorbell::channel::{self, Message, RecvError};
use doorbell::peer::{Trust, Trusted, Untrusted};
use doorbell::select::Selectable;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::ffi::c_int;
use std::os::fd::AsRawFd;
use std::time::Instant;

/// What Python does with a receiver, whomever it trusts.
trait Take: Send + std::fmt::Debug {
    fn recv(&mut self, until: Option<Instant>) -> Result<Option<Vec<u8>>, RecvError>;
    fn try_recv(&mut self) -> Result<Option<Vec<u8>>, RecvError>;
    fn hold(&mut self, until: Option<Instant>) -> Result<Option<(usize, usize)>, RecvError>;
    fn release(&mut self);
    fn is_held(&self) -> bool;
    fn selectable(&mut self) -> &mut dyn Selectable;
    fn fd(&mut self) -> Result<i32, RecvError>;
    fn listen(&mut self) -> Result<bool, RecvError>;
    fn watch(&mut self, changes: &Changes) -> PyResult<Vec<i32>>;
}

/// A receiver, and the message of it that a view shows.
type Receiving<T> = Lending<channel::Receiver<T>, Message<'static, T>>;

const _: () = {
    const fn from_thread_to_thread<T: Send>() {}
    from_thread_to_thread::<channel::Receiver<Untrusted>>();
    from_thread_to_thread::<channel::Receiver<Trusted>>();
};

impl<T: Trust> Take for Receiving<T> {
    fn recv(&mut self, until: Option<Instant>) -> Result<Option<Vec<u8>>, RecvError> {
        Ok(self.free().recv_deadline(until.map(Deadline::at))?.map(|message| message.into_vec()))
    }

    fn try_recv(&mut self) -> Result<Option<Vec<u8>>, RecvError> {
        Ok(self.free().try_recv()?.map(|message| message.into_vec()))
    }

    fn hold(&mut self, until: Option<Instant>) -> Result<Option<(usize, usize)>, RecvError> {
        let receiver = self.free();
        let Some(message) = receiver.recv_deadline(until.map(Deadline::at))? else { return Ok(None) };
        let place = (message.as_ptr() as usize, message.len());
        self.lent = Some(message);
        Ok(Some(place))
    }

    fn release(&mut self) {
        if let Some(message) = self.lent.take() {
            message.release();
        }
    }

    fn is_held(&self) -> bool {
        self.lent.is_some()
    }

    fn selectable(&mut self) -> &mut dyn Selectable {
        self.free()
    }

    fn fd(&mut self) -> Result<i32, RecvError> {
        Ok(self.free().file()?.as_raw_fd())
    }

    fn listen(&mut self) -> Result<bool, RecvError> {
        Ok(self.free().listen()?)
    }

    fn watch(&mut self, changes: &Changes) -> PyResult<Vec<i32>> {
        changes.watch(&[self.free().file().map_err(of_wait)?])
    }
}

/// The receiving end of a lane.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Receiver {
    /// `None` once closed.
    receiver: Handle<Option<Box<dyn Take>>>,
    changes: Changes,
}

impl Receiver {
    pub(crate) fn of<T: Trust>(
        receiver: Result<channel::Receiver<T>, channel::AttachError>,
    ) -> PyResult<Self> {
        Ok(Self::over(receiver.map_err(of_attach)?))
    }

    pub(crate) fn over<T: Trust>(mut receiver: channel::Receiver<T>) -> Self {
        receiver.set_interruptible(true);
        Self {
            receiver: Handle::new(Some(Box::new(Receiving::new(receiver)) as _)),
            changes: Changes::default(),
        }
    }

    /// Runs `run` on the receiver, of which no message is held.
    fn with<R>(&self, run: impl FnOnce(&mut dyn Take) -> PyResult<R>) -> PyResult<R> {
        run(free(&mut *self.receiver.lock()?)?)
    }

    pub(crate) fn locked(&self) -> PyResult<impl Locked + '_> {
        self.receiver.lock()
    }
}

/// The receiver, if it was not closed and no message of it is held.
fn free(receiver: &mut Option<Box<dyn Take>>) -> PyResult<&mut dyn Take> {
    let receiver = receiver.as_deref_mut().ok_or_else(closed)?;
    if receiver.is_held() {
        return Err(PyValueError::new_err("a received view is still held; release it first"));
    }
    Ok(receiver)
}

fn leave(receiver: &mut Option<Box<dyn Take>>) -> PyResult<()> {
    if receiver.as_ref().is_some_and(|receiver| receiver.is_held()) {
        return Err(PyValueError::new_err("a received view is still held; release it first"));
    }
    receiver.take();
    Ok(())
}

impl Locked for Option<Box<dyn Take>> {
    fn selectable(&mut self) -> PyResult<&mut dyn Selectable> {
        Ok(free(self)?.selectable())
    }
}

#[pymethods]
impl Receiver {
    #[pyo3(signature = (timeout = None))]
    fn recv<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        // A message that is there costs no trip without the lock.
        if let Some(message) = self.try_recv(py)? {
            return Ok(Some(message));
        }
        let message = self
            .receiver
            .wait(py, timeout, |receiver, until| Stretch::of(free(receiver)?.recv(until), of_receive))?;
        Ok(message.map(|message| PyBytes::new(py, &message)))
    }

    fn try_recv<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        // Another thread waits: there is none.
        let Some(mut receiver) = self.receiver.at_once() else { return Ok(None) };
        let message = free(&mut receiver)?.try_recv().map_err(of_receive)?;
        Ok(message.map(|message| PyBytes::new(py, &message)))
    }

    #[pyo3(signature = (timeout = None))]
    fn recv_view(slf: Py<Self>, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<View>> {
        let place = slf.get().receiver.wait(py, timeout, |receiver, until| {
            Stretch::of(free(receiver)?.hold(until), of_receive).map(Stretch::lent)
        })?;
        Ok(place.map(|(at, length)| View {
            // SAFETY: the receiver holds the message there, and keeps its memory, until it is released.
            place: unsafe { Place::new(at, length, Access::ReadOnly) },
            receiver: slf,
        }))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        match self.recv(py, None) {
            Err(error) if error.is_instance_of::<Closed>(py) => Ok(None),
            result => result,
        }
    }

    fn __aiter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        py.import("doorbell.aio")?.getattr("AsyncReceiver")?.call1((slf,))
    }

    fn fileno(&self) -> PyResult<i32> {
        self.with(|receiver| receiver.fd().map_err(of_receive))
    }

    fn listen(&self) -> PyResult<bool> {
        self.with(|receiver| receiver.listen().map_err(of_receive))
    }

    fn _begin_await(&self) -> PyResult<()> {
        self.changes.begin()
    }

    fn _end_await(&self) {
        self.changes.end();
    }

    fn _watch(&self) -> PyResult<Vec<i32>> {
        self.with(|receiver| receiver.watch(&self.changes))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.receiver.close(py, leave)?;
        self.changes.tell();
        Ok(())
    }

    fn _close_at_exit(&self, py: Python<'_>) -> PyResult<()> {
        self.receiver.close_at_exit(py, leave)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(exception.py())
    }
}

/// A message where it lies in the ring, read through the buffer protocol.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct View {
    receiver: Py<Receiver>,
    place: Place,
}

impl View {
    /// Whoever waits for the receiver has its turn then.
    fn give_back(&self) {
        let mut receiver = self.receiver.get().receiver.take_back();
        if let Some(receiver) = receiver.as_deref_mut() {
            receiver.release();
        }
    }
}

#[pymethods]
impl View {
    fn release(&self) -> PyResult<()> {
        self.place.give_back(|| self.give_back()).map(drop)
    }

    fn __len__(&self) -> usize {
        self.place.length()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release()
    }

    /// # Safety
    /// As CPython calls it: `view` is valid for writes.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        // SAFETY: by contract.
        unsafe { slf.get().place.export(slf.as_any(), view, flags) }
    }

    /// # Safety
    /// As CPython calls it: once for each buffer.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.place.unexport();
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.place.give_back_at_last(|| self.give_back());
    }
}
