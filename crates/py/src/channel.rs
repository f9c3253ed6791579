// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels.

use crate::bell::lock;
use crate::blocking::{self, Stretch};
use crate::buffer::Buffer;
use crate::changes::Changes;
use crate::error::{Closed, of_attach, of_receive, of_send, of_wait};
use crate::lending::Lending;
use crate::locked::Locked;
use crate::place::{Access, Place};
use crate::slot::Slot;
use doorbell::channel::{self, Message, RecvError, SendError};
use doorbell::peer::{Trust, Trusted, Untrusted};
use doorbell::select::Selectable;
use doorbell::wait::Adaptive;
use doorbell::{Deadline, WaitError, rendezvous};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::c_int;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::time::Instant;

/// What Python does with a sender, whomever it trusts.
trait Deliver: Send + std::fmt::Debug {
    fn send(&mut self, message: &[u8], until: Option<Instant>) -> Result<bool, SendError>;
    fn try_send(&mut self, message: &[u8]) -> Result<bool, SendError>;
    fn push(&mut self, message: &[u8]) -> Result<bool, SendError>;
    fn ring(&mut self);
    fn longest(&mut self) -> u64;
    fn listen(&mut self, length: usize) -> Result<bool, WaitError>;
    fn watch(&mut self, changes: &Changes) -> PyResult<Vec<i32>>;
    /// Where a message of so many bytes may be written, until it is settled.
    fn reserve(&mut self, most: usize, until: Option<Instant>) -> Result<Option<usize>, SendError>;
    fn is_reserved(&self) -> bool;
    /// Sends the first bytes of what is reserved, or none of it.
    fn settle(&mut self, length: Option<usize>);
}

impl<T: Trust> Deliver for Lending<channel::Sender<T>, channel::Slot<'static, T, Adaptive>> {
    fn send(&mut self, message: &[u8], until: Option<Instant>) -> Result<bool, SendError> {
        sent(self.free().send_deadline(message, until.map(Deadline::at)))
    }

    fn try_send(&mut self, message: &[u8]) -> Result<bool, SendError> {
        sent(self.free().try_send(message))
    }

    fn push(&mut self, message: &[u8]) -> Result<bool, SendError> {
        sent(self.free().push(message))
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
        let sender = self.free();
        let reserved = match until {
            Some(until) => sender.reserve_deadline(most, Deadline::at(until)),
            None => sender.reserve(most),
        };
        match reserved {
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

    fn settle(&mut self, length: Option<usize>) {
        if let (Some(slot), Some(length)) = (self.lent.take(), length) {
            slot.commit_first(length);
        }
    }
}

fn sent(result: Result<(), SendError>) -> Result<bool, SendError> {
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
    sender: Mutex<Option<Box<dyn Deliver>>>,
    changes: Changes,
}

impl Sender {
    pub(crate) fn attach(connection: &rendezvous::Connection<Untrusted>, lane: u32) -> PyResult<Self> {
        Self::of(channel::Sender::attach(connection, lane))
    }

    pub(crate) fn at(segment: &rendezvous::Segment, lane: u32) -> PyResult<Self> {
        Self::of(channel::Sender::<Trusted>::at(segment, lane))
    }

    fn of<T: Trust>(sender: Result<channel::Sender<T>, channel::AttachError>) -> PyResult<Self> {
        Ok(Self::over(sender.map_err(of_attach)?))
    }

    pub(crate) fn over<T: Trust>(mut sender: channel::Sender<T>) -> Self {
        sender.set_interruptible(true);
        Self { sender: Mutex::new(Some(Box::new(Lending::new(sender)))), changes: Changes::default() }
    }

    /// Runs `run` on the sender, of which nothing is reserved.
    fn with<R>(&self, run: impl FnOnce(&mut dyn Deliver) -> PyResult<R>) -> PyResult<R> {
        let mut sender = lock(&self.sender)?;
        let sender = sender.as_deref_mut().ok_or_else(closed)?;
        if sender.is_reserved() {
            return Err(reserved());
        }
        run(sender)
    }

    /// Sends the first bytes of what is reserved, or gives it back. Whoever has the sender meanwhile is refused at once.
    pub(crate) fn settle(&self, length: Option<usize>) {
        let mut sender = self.sender.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(sender) = sender.as_deref_mut() {
            sender.settle(length);
        }
    }

    /// Waits while there is no room.
    fn send_patiently(&self, py: Python<'_>, message: &[u8], timeout: Option<f64>) -> PyResult<bool> {
        let sent = blocking::wait(py, timeout, |until| {
            self.with(|sender| match sender.send(message, until) {
                Ok(true) => Ok(Stretch::Came(())),
                Ok(false) | Err(SendError::Wait(WaitError::Interrupted)) => Ok(Stretch::Nothing),
                Err(error) => Err(of_send(error)),
            })
        })?;
        Ok(sent.is_some())
    }

    /// Pushes each message, and waits where there is no room. Returns how many were sent.
    fn push_all(&self, py: Python<'_>, messages: &[Buffer], timeout: Option<f64>) -> PyResult<usize> {
        let begun = Instant::now();
        for (number, message) in messages.iter().enumerate() {
            let message = message.copy(py)?;
            if !self.with(|sender| sender.push(&message).map_err(of_send))? {
                let left = timeout.map(|timeout| timeout - begun.elapsed().as_secs_f64());
                if !self.send_patiently(py, &message, left)? {
                    return Ok(number);
                }
            }
        }
        Ok(messages.len())
    }
}

fn reserved() -> PyErr {
    PyValueError::new_err("a reserved slot is still held; commit or release it first")
}

fn closed() -> PyErr {
    PyValueError::new_err("this end of the lane was closed")
}

#[pymethods]
impl Sender {
    #[pyo3(signature = (message, timeout = None))]
    fn send(&self, py: Python<'_>, message: Buffer, timeout: Option<f64>) -> PyResult<bool> {
        let message = message.copy(py)?;
        // With room there is no trip without the lock.
        if self.with(|sender| sender.try_send(&message).map_err(of_send))? {
            return Ok(true);
        }
        self.send_patiently(py, &message, timeout)
    }

    #[pyo3(signature = (most, timeout = None))]
    fn reserve(slf: Py<Self>, py: Python<'_>, most: usize, timeout: Option<f64>) -> PyResult<Option<Slot>> {
        let place = blocking::wait(py, timeout, |until| {
            slf.get().with(|sender| match sender.reserve(most, until) {
                Ok(Some(at)) => Ok(Stretch::Came(at)),
                Ok(None) | Err(SendError::Wait(WaitError::Interrupted)) => Ok(Stretch::Nothing),
                Err(error) => Err(of_send(error)),
            })
        })?;
        Ok(place.map(|at| Slot {
            // SAFETY: the sender has lent them out, and keeps its memory, until what is reserved is settled.
            place: unsafe { Place::new(at, most, Access::Writable) },
            process: std::process::id(),
            sender: slf,
        }))
    }

    fn try_send(&self, py: Python<'_>, message: Buffer) -> PyResult<bool> {
        let message = message.copy(py)?;
        self.with(|sender| sender.try_send(&message).map_err(of_send))
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
        // Also for those before one that failed.
        self.with(|sender| {
            sender.ring();
            Ok(())
        })?;
        sent
    }

    #[getter]
    fn longest(&self) -> PyResult<u64> {
        self.with(|sender| Ok(sender.longest()))
    }

    fn close(&self) -> PyResult<()> {
        let mut sender = lock(&self.sender)?;
        if sender.as_ref().is_some_and(|sender| sender.is_reserved()) {
            return Err(reserved());
        }
        sender.take();
        self.changes.tell();
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

/// What Python does with a receiver, whomever it trusts.
trait Take: Send + std::fmt::Debug {
    fn recv(&mut self, until: Option<Instant>) -> Result<Option<Vec<u8>>, RecvError>;
    fn try_recv(&mut self) -> Result<Option<Vec<u8>>, RecvError>;
    fn hold(&mut self, until: Option<Instant>) -> Result<Option<(NonNull<u8>, usize)>, RecvError>;
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
    from_thread_to_thread::<channel::Sender<Untrusted>>();
    from_thread_to_thread::<channel::Sender<Trusted>>();
};

impl<T: Trust> Take for Receiving<T> {
    fn recv(&mut self, until: Option<Instant>) -> Result<Option<Vec<u8>>, RecvError> {
        Ok(self.free().recv_deadline(until.map(Deadline::at))?.map(|message| message.into_vec()))
    }

    fn try_recv(&mut self) -> Result<Option<Vec<u8>>, RecvError> {
        Ok(self.free().try_recv()?.map(|message| message.into_vec()))
    }

    fn hold(&mut self, until: Option<Instant>) -> Result<Option<(NonNull<u8>, usize)>, RecvError> {
        let receiver = self.free();
        let Some(message) = receiver.recv_deadline(until.map(Deadline::at))? else { return Ok(None) };
        let place = (NonNull::new(message.as_ptr().cast_mut()).unwrap_or(NonNull::dangling()), message.len());
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
    receiver: Mutex<Option<Box<dyn Take>>>,
    changes: Changes,
}

impl Receiver {
    pub(crate) fn attach(connection: &rendezvous::Connection<Untrusted>, lane: u32) -> PyResult<Self> {
        Self::of(channel::Receiver::attach(connection, lane))
    }

    pub(crate) fn at(segment: &rendezvous::Segment, lane: u32) -> PyResult<Self> {
        Self::of(channel::Receiver::<Trusted>::at(segment, lane))
    }

    fn of<T: Trust>(receiver: Result<channel::Receiver<T>, channel::AttachError>) -> PyResult<Self> {
        Ok(Self::over(receiver.map_err(of_attach)?))
    }

    pub(crate) fn over<T: Trust>(mut receiver: channel::Receiver<T>) -> Self {
        receiver.set_interruptible(true);
        Self {
            receiver: Mutex::new(Some(Box::new(Receiving::new(receiver)) as _)),
            changes: Changes::default(),
        }
    }

    /// Runs `run` on the receiver, of which no message is held.
    fn with<R>(&self, run: impl FnOnce(&mut dyn Take) -> PyResult<R>) -> PyResult<R> {
        run(free(&mut *lock(&self.receiver)?)?)
    }

    pub(crate) fn locked(&self) -> PyResult<impl Locked + '_> {
        lock(&self.receiver)
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

impl Locked for Option<Box<dyn Take>> {
    fn selectable(&mut self) -> PyResult<&mut dyn Selectable> {
        Ok(free(self)?.selectable())
    }
}

/// The end of a stretch: a signal is none of the wait's errors.
fn stretch<T>(result: Result<Option<T>, RecvError>) -> PyResult<Stretch<T>> {
    match result {
        Ok(Some(it)) => Ok(Stretch::Came(it)),
        Ok(None) | Err(RecvError::Wait(WaitError::Interrupted)) => Ok(Stretch::Nothing),
        Err(error) => Err(of_receive(error)),
    }
}

#[pymethods]
impl Receiver {
    #[pyo3(signature = (timeout = None))]
    fn recv<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        // A message that is there costs no trip without the lock.
        if let Some(message) = self.with(|receiver| receiver.try_recv().map_err(of_receive))? {
            return Ok(Some(PyBytes::new(py, &message)));
        }
        let message =
            blocking::wait(py, timeout, |until| self.with(|receiver| stretch(receiver.recv(until))))?;
        Ok(message.map(|message| PyBytes::new(py, &message)))
    }

    fn try_recv<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let message = self.with(|receiver| receiver.try_recv().map_err(of_receive))?;
        Ok(message.map(|message| PyBytes::new(py, &message)))
    }

    #[pyo3(signature = (timeout = None))]
    fn recv_view(slf: Py<Self>, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<View>> {
        let receiver = slf.get();
        let place = blocking::wait(py, timeout, |until| {
            receiver.with(|receiver| {
                Ok(match stretch(receiver.hold(until))? {
                    Stretch::Came((at, length)) => Stretch::Came((at.as_ptr() as usize, length)),
                    Stretch::Nothing => Stretch::Nothing,
                })
            })
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

    fn close(&self) -> PyResult<()> {
        let mut receiver = lock(&self.receiver)?;
        if receiver.as_ref().is_some_and(|receiver| receiver.is_held()) {
            return Err(PyValueError::new_err("a received view is still held; release it first"));
        }
        receiver.take();
        self.changes.tell();
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

/// A message where it lies in the ring, read through the buffer protocol.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct View {
    receiver: Py<Receiver>,
    place: Place,
}

impl View {
    /// Whoever has the receiver meanwhile is refused at once.
    fn give_back(&self) {
        let mut receiver =
            self.receiver.get().receiver.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(receiver) = receiver.as_deref_mut() {
            receiver.release();
        }
    }
}

#[pymethods]
impl View {
    fn release(&self) -> PyResult<()> {
        self.place.give_back(|| self.give_back())
    }

    fn __len__(&self) -> usize {
        self.place.length()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
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
