// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages that are values of any type that serde knows (feature `serde`).

use super::error::{RecvError, SendError};
use super::receiver::Receiver;
use super::sender::Sender;
use crate::deadline::Deadline;
use crate::error::WaitError;
use crate::peer::{Trust, Untrusted};
use crate::wait::{Adaptive, Wait};
use serde::{Serialize, de::DeserializeOwned};
use std::fmt;
use std::marker::PhantomData;
use std::mem::take;

/// Why a value was not sent, or not received. `E` is [`SendError`] or [`RecvError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueError<E> {
    /// The value cannot be written, or the message that came is none of such a value. That message is gone; the next may be one.
    Format(postcard::Error),
    /// So many bytes follow the value in the message that came, which is gone.
    TrailingBytes(usize),
    /// As for a message of bytes.
    Channel(E),
}

impl<E: fmt::Display> fmt::Display for ValueError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(error) => {
                write!(f, "the value cannot be written or read ({error}); both sides must name the same type")
            }
            Self::TrailingBytes(rest) => {
                write!(f, "{rest} bytes follow the value; both sides must name the same type")
            }
            Self::Channel(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error> std::error::Error for ValueError<E> {}

impl<E> From<postcard::Error> for ValueError<E> {
    fn from(error: postcard::Error) -> Self {
        Self::Format(error)
    }
}

impl From<SendError> for ValueError<SendError> {
    fn from(error: SendError) -> Self {
        Self::Channel(error)
    }
}

impl From<RecvError> for ValueError<RecvError> {
    fn from(error: RecvError) -> Self {
        Self::Channel(error)
    }
}

impl From<WaitError> for ValueError<SendError> {
    fn from(error: WaitError) -> Self {
        Self::Channel(error.into())
    }
}

impl From<WaitError> for ValueError<RecvError> {
    fn from(error: WaitError) -> Self {
        Self::Channel(error.into())
    }
}

/// A [`Sender`] of values of one type, in [postcard's format](https://postcard.jamesmunns.com/wire-format).
///
/// Plain data travels faster as it lies in memory (`Typed`, feature `zerocopy`); this is for what has strings, lists and variants.
///
/// ```
/// use doorbell::channel::{ValueReceiver, ValueSender};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Debug, PartialEq)]
/// enum Order {
///     Buy { symbol: String, shares: u32 },
///     Cancel(Vec<u64>),
/// }
///
/// let (sender, receiver) = doorbell::channel(4096)?;
/// let mut sender = ValueSender::new(sender);
/// let mut receiver = ValueReceiver::<Order, _, _>::new(receiver);
/// sender.send(&Order::Buy { symbol: "BELL".into(), shares: 7 })?;
/// assert_eq!(receiver.recv()?, Order::Buy { symbol: "BELL".into(), shares: 7 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ValueSender<M: Serialize, T: Trust = Untrusted, W: Wait = Adaptive> {
    bytes: Sender<T, W>,
    /// The last value, written; kept for its room.
    written: Vec<u8>,
    message: PhantomData<fn(M)>,
}

impl<M: Serialize, T: Trust, W: Wait> ValueSender<M, T, W> {
    /// Sends values over `bytes`.
    pub fn new(bytes: Sender<T, W>) -> Self {
        Self { bytes, written: Vec::new(), message: PhantomData }
    }

    /// Sends a value. Waits while there is no room.
    ///
    /// # Errors
    /// [`ValueError::Format`] if its `Serialize` fails; else as [`Sender::send`].
    pub fn send(&mut self, value: &M) -> Result<(), ValueError<SendError>> {
        self.write(value)?;
        Ok(self.bytes.send(&self.written)?)
    }

    /// Sends a value if there is room.
    ///
    /// # Errors
    /// [`ValueError::Format`] if its `Serialize` fails; else as [`Sender::try_send`].
    pub fn try_send(&mut self, value: &M) -> Result<(), ValueError<SendError>> {
        self.write(value)?;
        Ok(self.try_send_written()?)
    }

    /// The sender of bytes behind it, for deadlines, drops and event loops.
    pub fn bytes(&mut self) -> &mut Sender<T, W> {
        &mut self.bytes
    }

    /// Writes a value, to be sent as often as there is no room. How many bytes it takes.
    pub(crate) fn write(&mut self, value: &M) -> Result<u64, postcard::Error> {
        self.written.clear();
        self.written = postcard::to_extend(value, take(&mut self.written))?;
        Ok(self.written.len() as u64)
    }

    /// Sends the value that was written last, if there is room.
    pub(crate) fn try_send_written(&mut self) -> Result<(), SendError> {
        self.bytes.try_send(&self.written)
    }
}

/// A [`Receiver`] of values of one type. See [`ValueSender`].
///
/// A message is copied once and read from the copy, so no sender can change what was checked. One who is not trusted chooses how
/// long lists are: a type whose lists have elements without bytes (`Vec<()>`) can be made to keep the receiver busy.
#[derive(Debug)]
pub struct ValueReceiver<M: DeserializeOwned, T: Trust = Untrusted, W: Wait = Adaptive> {
    bytes: Receiver<T, W>,
    /// The last message; kept for its room.
    copy: Vec<u8>,
    message: PhantomData<fn() -> M>,
}

impl<M: DeserializeOwned, T: Trust, W: Wait> ValueReceiver<M, T, W> {
    /// Receives values from `bytes`.
    pub fn new(bytes: Receiver<T, W>) -> Self {
        Self { bytes, copy: Vec::new(), message: PhantomData }
    }

    /// The next value. Waits while there is none.
    ///
    /// # Errors
    /// [`ValueError::Format`], [`ValueError::TrailingBytes`]; else as [`Receiver::recv`].
    pub fn recv(&mut self) -> Result<M, ValueError<RecvError>> {
        self.bytes.recv_into(&mut self.copy)?;
        read(&self.copy)
    }

    /// The next value, if there is one.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn try_recv(&mut self) -> Result<Option<M>, ValueError<RecvError>> {
        let Some(message) = self.bytes.try_recv()? else { return Ok(None) };
        message.try_take_into(&mut self.copy)?;
        read(&self.copy).map(Some)
    }

    /// The next value. Waits until `deadline` while there is none. `None` if none came.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_deadline(&mut self, deadline: Option<Deadline>) -> Result<Option<M>, ValueError<RecvError>> {
        let Some(message) = self.bytes.recv_deadline(deadline)? else { return Ok(None) };
        message.try_take_into(&mut self.copy)?;
        read(&self.copy).map(Some)
    }

    /// The receiver of bytes behind it, for event loops.
    pub fn bytes(&mut self) -> &mut Receiver<T, W> {
        &mut self.bytes
    }
}

/// The value that `message` is, all of it.
fn read<M: DeserializeOwned>(message: &[u8]) -> Result<M, ValueError<RecvError>> {
    match postcard::take_from_bytes(message)? {
        (value, []) => Ok(value),
        (_, rest) => Err(ValueError::TrailingBytes(rest.len())),
    }
}
