// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sending end of a lane, and messages that are written where they will lie.

use crate::blocking::Stretch;
use crate::buffer::{Buffer, Bytes};
use crate::changes::Changes;
use crate::error::{closed, of_attach, of_send, of_wait};
use crate::handle::Handle;
use crate::lending::Lending;
use crate::place::{Access, Place};
use doorbell::channel::{self, SendError};
use doorbell::peer::{Trust, Trusted, Untrusted};
use doorbell::wait::Adaptive;
use doorbell::{Deadline, WaitError};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::time::Instant;

const _: () = {
    const fn from_thread_to_thread<T: Send>() {}
    from_thread_to_thread::<channel::Sender<Untrusted>>();
    from_thread_to_thread::<channel::Sender<Trusted>>();
};

/// What Python does with a sender, whomever it trusts.
trait Deliver: Send + std::fmt::Debug {
    fn send(&mut self, message: &Bytes<'_>, until: Option<Instant>) -> Result<bool, SendError>;
    fn try_send(&mut self, message: &Bytes<'_>) -> Result<bool, SendError>;
    fn push(&mut self, message: &Bytes<'_>) -> Result<bool, SendError>;
    fn ring(&mut self);
    fn longest(&mut self) -> u64;
    fn listen(&mut self, length: usize) -> Result<bool, WaitError>;
    fn watch(&mut self, changes: &Changes) -> PyResult<Vec<i32>>;
    /// Where a message of so many bytes may be written, until it is settled.
    fn reserve(&mut self, most: usize, until: Option<Instant>) -> Result<Option<usize>, SendError>;
    fn is_reserved(&self) -> bool;
    /// Sends the first bytes of what is reserved, or none of it.
    fn settle(&mut self, length: Option<usize>) -> Result<(), SendError>;
}

impl<T: Trust> Deliver for Lending<channel::Sender<T>, channel::Slot<'static, T, Adaptive>> {
    fn send(&mut self, message: &Bytes<'_>, until: Option<Instant>) -> Result<bool, SendError> {
        sent(send(self.free(), message, until))
    }

    fn try_send(&mut self, message: &Bytes<'_>) -> Result<bool, SendError> {
        sent(try_send(self.free(), message))
    }

    fn push(&mut self, message: &Bytes<'_>) -> Result<bool, SendError> {
        let sender = self.free();
        sent(match message.borrowed() {
            Ok(bytes) => sender.push(bytes),
            Err(changing) => {
                // Its drop would ring for each message.
                let mut batch = ManuallyDrop::new(sender.batch());
                batch.try_reserve(changing.length()).and_then(|mut slot| {
                    changing.copy_to(&mut slot);
                    slot.commit()
                })
            }
        })
    }

    fn ring(&mut self) {
        self.free().ring();
    }

    fn longest(&mut self) -> u64 {
        self.free().longest()
    }

    fn listen(&mut self, length: usize) -> Result<bool, WaitError> {
        self.free().listen(length)
    }

    fn watch(&mut self, changes: &Changes) -> PyResult<Vec<i32>> {
        changes.watch(&[self.free().file().map_err(of_wait)?])
    }

    fn reserve(&mut self, most: usize, until: Option<Instant>) -> Result<Option<usize>, SendError> {
        // Another thread's batch may have pushed, and finds this end lent when it wants to ring.
        self.free().ring();
        match reserve(self.free(), most, until) {
            Ok(mut slot) => {
                let at = slot.as_mut_ptr() as usize;
                self.lent = Some(slot);
                Ok(Some(at))
            }
            Err(SendError::Full | SendError::TimedOut | SendError::NoReceiver) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_reserved(&self) -> bool {
        self.lent.is_some()
    }

    fn settle(&mut self, length: Option<usize>) -> Result<(), SendError> {
        match (self.lent.take(), length) {
            (Some(slot), Some(length)) => slot.commit_first(length),
            _ => Ok(()),
        }
    }
}

fn reserve<T: Trust>(
    sender: &mut channel::Sender<T>,
    most: usize,
    until: Option<Instant>,
) -> Result<channel::Slot<'_, T, Adaptive>, SendError> {
    match until {
        Some(until) => sender.reserve_deadline(most, Deadline::at(until)),
        None => sender.reserve(most),
    }
}

/// Sends `message`, without another copy, and waits for room.
pub(crate) fn send<T: Trust>(
    sender: &mut channel::Sender<T>,
    message: &Bytes<'_>,
    until: Option<Instant>,
) -> Result<(), SendError> {
    match message.borrowed() {
        Ok(bytes) => sender.send_deadline(bytes, until.map(Deadline::at)),
        Err(changing) => {
            let mut slot = reserve(sender, changing.length(), until)?;
            changing.copy_to(&mut slot);
            slot.commit()
        }
    }
}

/// Sends `message` if there is room, without another copy.
pub(crate) fn try_send<T: Trust>(
    sender: &mut channel::Sender<T>,
    message: &Bytes<'_>,
) -> Result<(), SendError> {
    match message.borrowed() {
        Ok(bytes) => sender.try_send(bytes),
        Err(changing) => {
            let mut slot = sender.try_reserve(changing.length())?;
            changing.copy_to(&mut slot);
            slot.commit()
        }
    }
}

/// False without room.
pub(crate) fn sent(result: Result<(), SendError>) -> Result<bool, SendError> {
    match result {
        Ok(()) => Ok(true),
        Err(SendError::Full | SendError::TimedOut | SendError::NoReceiver) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The sending end of a lane.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Sender {
    /// `None` once closed.
    sender: Handle<Option<Box<dyn Deliver>>>,
    changes: Changes,
}

impl Sender {
    pub(crate) fn of<T: Trust>(sender: Result<channel::Sender<T>, channel::AttachError>) -> PyResult<Self> {
        Ok(Self::over(sender.map_err(of_attach)?))
    }

    pub(crate) fn over<T: Trust>(mut sender: channel::Sender<T>) -> Self {
        sender.set_interruptible(true);
        Self { sender: Handle::new(Some(Box::new(Lending::new(sender)))), changes: Changes::default() }
    }

    /// Runs `run` on the sender, of which nothing is reserved.
    fn with<R>(&self, run: impl FnOnce(&mut dyn Deliver) -> PyResult<R>) -> PyResult<R> {
        run(free(&mut *self.sender.lock()?)?)
    }

    /// Sends the first bytes of what is reserved, or gives it back.
    /// Whoever waits for the sender has its turn then.
    fn settle(&self, length: Option<usize>) -> Result<(), SendError> {
        let mut sender = self.sender.take_back();
        sender.as_deref_mut().map_or(Ok(()), |sender| sender.settle(length))
    }

    /// False without room, also while another thread waits for that.
    fn sends_at_once(&self, message: &Bytes<'_>) -> PyResult<bool> {
        let Some(mut sender) = self.sender.at_once() else { return Ok(false) };
        free(&mut sender)?.try_send(message).map_err(of_send)
    }

    /// Waits while there is no room.
    fn send_patiently(&self, py: Python<'_>, message: &Bytes<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let sent = self.sender.wait(py, timeout, |sender, until| {
            Stretch::of(free(sender)?.send(message, until).map(|sent| sent.then_some(())), of_send)
        })?;
        Ok(sent.is_some())
    }

    /// Pushes each message, and waits where there is no room. Returns how many were sent.
    fn push_all(&self, py: Python<'_>, messages: &[Buffer], timeout: Option<f64>) -> PyResult<usize> {
        let begun = Instant::now();
        for (number, message) in messages.iter().enumerate() {
            let message = message.bytes(py)?;
            let pushed = match self.sender.at_once() {
                Some(mut sender) => free(&mut sender)?.push(&message).map_err(of_send)?,
                None => false,
            };
            if !pushed {
                let left = timeout.map(|timeout| timeout - begun.elapsed().as_secs_f64());
                if !self.send_patiently(py, &message, left)? {
                    return Ok(number);
                }
            }
        }
        Ok(messages.len())
    }
}

/// The sender, if it was not closed and nothing of it is reserved.
fn free(sender: &mut Option<Box<dyn Deliver>>) -> PyResult<&mut dyn Deliver> {
    let sender = sender.as_deref_mut().ok_or_else(closed)?;
    if sender.is_reserved() { Err(reserved()) } else { Ok(sender) }
}

fn leave(sender: &mut Option<Box<dyn Deliver>>) -> PyResult<()> {
    if sender.as_ref().is_some_and(|sender| sender.is_reserved()) {
        return Err(reserved());
    }
    sender.take();
    Ok(())
}

fn reserved() -> PyErr {
    PyValueError::new_err("a reserved slot is still held; commit or release it first")
}

#[pymethods]
impl Sender {
    #[pyo3(signature = (message, timeout = None))]
    fn send(&self, py: Python<'_>, message: Buffer, timeout: Option<f64>) -> PyResult<bool> {
        let message = message.bytes(py)?;
        // With room there is no trip without the lock.
        if self.sends_at_once(&message)? {
            return Ok(true);
        }
        self.send_patiently(py, &message, timeout)
    }

    #[pyo3(signature = (most, timeout = None))]
    fn reserve(slf: Py<Self>, py: Python<'_>, most: usize, timeout: Option<f64>) -> PyResult<Option<Slot>> {
        let place = slf.get().sender.wait(py, timeout, |sender, until| {
            Stretch::of(free(sender)?.reserve(most, until), of_send).map(Stretch::lent)
        })?;
        Ok(place.map(|at| Slot {
            // SAFETY: the sender has lent them out, and keeps its memory, until what is reserved is settled.
            place: unsafe { Place::new(at, most, Access::Writable) },
            sender: slf,
        }))
    }

    fn try_send(&self, py: Python<'_>, message: Buffer) -> PyResult<bool> {
        self.sends_at_once(&message.bytes(py)?)
    }

    fn listen(&self, length: usize) -> PyResult<bool> {
        self.with(|sender| sender.listen(length).map_err(of_wait))
    }

    fn _begin_await(&self) -> PyResult<()> {
        self.changes.begin()
    }

    fn _end_await(&self) {
        self.changes.end();
    }

    fn _watch(&self) -> PyResult<Vec<i32>> {
        self.with(|sender| sender.watch(&self.changes))
    }

    #[pyo3(signature = (messages, timeout = None))]
    fn send_batch(&self, py: Python<'_>, messages: Vec<Buffer>, timeout: Option<f64>) -> PyResult<usize> {
        let sent = self.push_all(py, &messages, timeout);
        // Also for those before one that failed. Whoever waits for room has rung.
        if let Some(mut sender) = self.sender.at_once() {
            free(&mut sender)?.ring();
        }
        sent
    }

    #[getter]
    fn longest(&self) -> PyResult<u64> {
        self.with(|sender| Ok(sender.longest()))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.sender.close(py, leave)?;
        self.changes.tell();
        Ok(())
    }

    fn _close_at_exit(&self, py: Python<'_>) -> PyResult<()> {
        self.sender.close_at_exit(py, leave)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(exception.py())
    }
}

/// Room in the ring for a message, written through the buffer protocol.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Slot {
    sender: Py<Sender>,
    place: Place,
}

#[pymethods]
impl Slot {
    #[pyo3(signature = (length = None))]
    fn commit(&self, length: Option<usize>) -> PyResult<()> {
        let most = self.place.length();
        let length = length.unwrap_or(most);
        if length > most {
            return Err(PyValueError::new_err(format!("the slot has {most} bytes, and not {length}")));
        }
        let sent = self.place.give_back(|| self.sender.get().settle(Some(length)))?;
        sent.transpose().map(drop).map_err(of_send)
    }

    fn release(&self) -> PyResult<()> {
        self.place.give_back(|| self.sender.get().settle(None)).map(drop)
    }

    fn __len__(&self) -> usize {
        self.place.length()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Sends all of it, if it was neither sent nor given back yet;
    /// gives it back if the block raised.
    #[pyo3(signature = (*exception))]
    fn __exit__(&self, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let raised = exception.get_item(0).is_ok_and(|kind| !kind.is_none());
        if raised { self.release() } else { self.commit(None) }
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

impl Drop for Slot {
    fn drop(&mut self) {
        self.place.give_back_at_last(|| self.sender.get().settle(None));
    }
}
