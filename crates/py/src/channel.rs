// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels.

use crate::bell::lock;
use crate::blocking::{self, Stretch};
use crate::changes::Changes;
use crate::error::{Closed, of_attach, of_receive, of_send, of_wait};
use crate::locked::Locked;
use doorbell::channel::{self, RecvError, SendError};
use doorbell::peer::{Trust, Trusted, Untrusted};
use doorbell::select::Selectable;
use doorbell::{Deadline, WaitError, rendezvous};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
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
    fn longest(&self) -> u64;
    fn listen(&mut self, length: usize) -> Result<bool, WaitError>;
    fn watch(&mut self, changes: &Changes) -> PyResult<Vec<i32>>;
}

impl<T: Trust> Deliver for channel::Sender<T> {
    fn send(&mut self, message: &[u8], until: Option<Instant>) -> Result<bool, SendError> {
        sent(self.send_deadline(message, until.map(Deadline::at)))
    }

    fn try_send(&mut self, message: &[u8]) -> Result<bool, SendError> {
        sent(self.try_send(message))
    }

    fn push(&mut self, message: &[u8]) -> Result<bool, SendError> {
        sent(self.push(message))
    }

    fn ring(&mut self) {
        self.ring();
    }

    fn longest(&self) -> u64 {
        self.longest()
    }

    fn listen(&mut self, length: usize) -> Result<bool, WaitError> {
        self.listen(length)
    }

    fn watch(&mut self, changes: &Changes) -> PyResult<Vec<i32>> {
        changes.watch(&[self.file().map_err(of_wait)?])
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
        Self { sender: Mutex::new(Some(Box::new(sender))), changes: Changes::default() }
    }

    fn with<R>(&self, run: impl FnOnce(&mut dyn Deliver) -> PyResult<R>) -> PyResult<R> {
        run(lock(&self.sender)?.as_deref_mut().ok_or_else(closed)?)
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
    fn push_all(&self, py: Python<'_>, messages: &[PyBuffer<u8>], timeout: Option<f64>) -> PyResult<usize> {
        let begun = Instant::now();
        for (number, message) in messages.iter().enumerate() {
            let message = message.to_vec(py)?;
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

fn closed() -> PyErr {
    PyValueError::new_err("this end of the lane was closed")
}

#[pymethods]
impl Sender {
    #[pyo3(signature = (message, timeout = None))]
    fn send(&self, py: Python<'_>, message: PyBuffer<u8>, timeout: Option<f64>) -> PyResult<bool> {
        let message = message.to_vec(py)?;
        // With room there is no trip without the lock.
        if self.with(|sender| sender.try_send(&message).map_err(of_send))? {
            return Ok(true);
        }
        self.send_patiently(py, &message, timeout)
    }

    fn try_send(&self, py: Python<'_>, message: PyBuffer<u8>) -> PyResult<bool> {
        let message = message.to_vec(py)?;
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
    fn send_batch(
        &self,
        py: Python<'_>,
        messages: Vec<PyBuffer<u8>>,
        timeout: Option<f64>,
    ) -> PyResult<usize> {
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
        lock(&self.sender)?.take();
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
///
/// Invariant: `receiver` came from a box and is freed by the drop. While `message` is there, it alone touches the
/// receiver.
#[derive(Debug)]
struct Receiving<T: Trust> {
    message: Option<channel::Message<'static, T>>,
    receiver: NonNull<channel::Receiver<T>>,
}

// SAFETY: it owns a receiver, which may go from thread to thread, and a borrow of it that goes along.
unsafe impl<T: Trust> Send for Receiving<T> {}

const _: () = {
    const fn from_thread_to_thread<T: Send>() {}
    from_thread_to_thread::<channel::Receiver<Untrusted>>();
    from_thread_to_thread::<channel::Receiver<Trusted>>();
};

impl<T: Trust> Receiving<T> {
    /// The receiver. The caller has seen that no message of it is held.
    fn free(&mut self) -> &'static mut channel::Receiver<T> {
        assert!(self.message.is_none(), "a held message is refused before");
        // SAFETY: there is no message, so nobody else touches the receiver (invariant). 'static stands for "until the
        // drop of `self`": the result is used up within the call, or becomes the message, which the drop takes first.
        // JUSTIFICATION: the borrow lives in Python between two calls, where the compiler cannot follow it.
        unsafe { self.receiver.as_mut() }
    }
}

impl<T: Trust> Drop for Receiving<T> {
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            message.release();
        }
        // SAFETY: it came from a box, and with the message gone nobody else touches it (invariant).
        drop(unsafe { Box::from_raw(self.receiver.as_ptr()) });
    }
}

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
        self.message = Some(message);
        Ok(Some(place))
    }

    fn release(&mut self) {
        if let Some(message) = self.message.take() {
            message.release();
        }
    }

    fn is_held(&self) -> bool {
        self.message.is_some()
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
        let receiver = NonNull::from(Box::leak(Box::new(receiver)));
        let receiver = Mutex::new(Some(Box::new(Receiving { message: None, receiver }) as _));
        Self { receiver, changes: Changes::default() }
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
            receiver: slf.clone_ref(py),
            at,
            length,
            held: Mutex::new(Held { message: true, exports: 0 }),
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

#[derive(Debug)]
struct Held {
    /// Does the ring still hold the message for this view?
    message: bool,
    /// Buffers that are exported: as long as there is one, the message must stay.
    exports: usize,
}

/// A message where it lies in the ring, read through the buffer protocol.
///
/// Invariant: while `held.message` is true, the receiver holds a message of `length` bytes at `at`.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct View {
    receiver: Py<Receiver>,
    at: usize,
    length: usize,
    held: Mutex<Held>,
}

impl View {
    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Gives the message back, once.
    fn give_back(&self, held: &mut Held) {
        if std::mem::take(&mut held.message) {
            let mut receiver =
                self.receiver.get().receiver.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if let Some(receiver) = receiver.as_deref_mut() {
                receiver.release();
            }
        }
    }
}

#[pymethods]
impl View {
    fn release(&self) -> PyResult<()> {
        let mut held = self.held();
        if held.exports > 0 {
            return Err(PyBufferError::new_err(format!(
                "{} memoryviews of the message are still there; release them first",
                held.exports
            )));
        }
        self.give_back(&mut held);
        Ok(())
    }

    fn __len__(&self) -> usize {
        self.length
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
        let this = slf.get();
        let mut held = this.held();
        if !held.message {
            return Err(PyValueError::new_err("the message was released"));
        }
        let length = ffi::Py_ssize_t::try_from(this.length)
            .map_err(|_| PyBufferError::new_err("the message is too long"))?;
        const READ_ONLY: c_int = 1;
        // SAFETY: `view` is CPython's to be filled in. The message is valid for reads of `length` bytes while it is held
        // (invariant), which it is until the last export is released; `slf` is kept by the export.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), this.at as *mut _, length, READ_ONLY, flags)
        };
        if filled != 0 {
            return Err(PyErr::fetch(slf.py()));
        }
        held.exports += 1;
        Ok(())
    }

    /// # Safety
    /// As CPython calls it: once for each buffer.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        let mut held = self.held();
        held.exports = held.exports.saturating_sub(1);
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // Nobody has a buffer of it: each keeps the view.
        let mut held = Held { message: self.held().message, exports: 0 };
        self.give_back(&mut held);
    }
}
