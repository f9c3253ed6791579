// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages that are values of one type (feature `zerocopy`).

use super::error::{RecvError, SendError};
use super::receiver::Receiver;
use super::sender::Sender;
use crate::deadline::Deadline;
use crate::peer::{Trust, Untrusted};
use crate::wait::{Adaptive, Wait};
use doorbell_core::violation::PeerViolation;
use std::marker::PhantomData;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A type whose values travel as their bytes: plain data without padding, for which every combination of bytes is a
/// value. All three are derived, and the compiler refuses what does not qualify.
///
/// ```
/// use doorbell::channel::{Typed, TypedReceiver, TypedSender};
/// use zerocopy::{FromBytes, Immutable, IntoBytes};
///
/// #[derive(FromBytes, IntoBytes, Immutable, Debug, PartialEq)]
/// #[repr(C)]
/// struct Quote {
///     instrument: u32,
///     size: u32,
///     price: i64,
/// }
///
/// let (sender, receiver) = doorbell::channel::pair(4096)?;
/// let mut sender = TypedSender::new(sender);
/// let mut receiver = TypedReceiver::<Quote, _, _>::new(receiver);
/// sender.send(&Quote { instrument: 7, size: 100, price: -3 })?;
/// assert_eq!(receiver.recv()?, Quote { instrument: 7, size: 100, price: -3 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail
/// fn is_typed<M: doorbell::channel::Typed>() {}
/// // A pointer means nothing in another process.
/// is_typed::<&'static str>();
/// ```
pub trait Typed: FromBytes + IntoBytes + Immutable {}
impl<M: FromBytes + IntoBytes + Immutable> Typed for M {}

/// A [`Sender`] of values of one type.
#[derive(Debug)]
pub struct TypedSender<M: Typed, T: Trust = Untrusted, W: Wait = Adaptive> {
    bytes: Sender<T, W>,
    message: PhantomData<fn(M)>,
}

impl<M: Typed, T: Trust, W: Wait> TypedSender<M, T, W> {
    /// Sends values over `bytes`.
    pub fn new(bytes: Sender<T, W>) -> Self {
        Self { bytes, message: PhantomData }
    }

    /// Sends a value. Waits while there is no room.
    ///
    /// # Errors
    /// As [`Sender::send`].
    #[inline]
    pub fn send(&mut self, value: &M) -> Result<(), SendError> {
        self.bytes.send(value.as_bytes())
    }

    /// Sends a value if there is room.
    ///
    /// # Errors
    /// As [`Sender::try_send`].
    #[inline]
    pub fn try_send(&mut self, value: &M) -> Result<(), SendError> {
        self.bytes.try_send(value.as_bytes())
    }

    /// The sender of bytes behind it, for deadlines, batches and drops.
    pub fn bytes(&mut self) -> &mut Sender<T, W> {
        &mut self.bytes
    }
}

/// A [`Receiver`] of values of one type. Values are copied out, and are sound whoever sent them.
#[derive(Debug)]
pub struct TypedReceiver<M: Typed, T: Trust = Untrusted, W: Wait = Adaptive> {
    bytes: Receiver<T, W>,
    message: PhantomData<fn() -> M>,
}

impl<M: Typed, T: Trust, W: Wait> TypedReceiver<M, T, W> {
    /// Receives values from `bytes`.
    pub fn new(bytes: Receiver<T, W>) -> Self {
        Self { bytes, message: PhantomData }
    }

    /// The next value. Waits while there is none.
    ///
    /// # Errors
    /// As [`Receiver::recv`]; [`PeerViolation::LengthOutOfRange`] if a message has another length than the type. Such a
    /// message is received, that is, gone.
    #[inline]
    pub fn recv(&mut self) -> Result<M, RecvError> {
        let message = self.bytes.recv()?;
        value(message.len(), |to| message.copy_to(to))
    }

    /// The next value, if there is one.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    #[inline]
    pub fn try_recv(&mut self) -> Result<Option<M>, RecvError> {
        let Some(message) = self.bytes.try_recv()? else { return Ok(None) };
        value(message.len(), |to| message.copy_to(to)).map(Some)
    }

    /// The next value. Waits until `deadline` while there is none. `None` if none came.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_deadline(&mut self, deadline: Option<Deadline>) -> Result<Option<M>, RecvError> {
        let Some(message) = self.bytes.recv_deadline(deadline)? else { return Ok(None) };
        value(message.len(), |to| message.copy_to(to)).map(Some)
    }

    /// The receiver of bytes behind it, for event loops.
    pub fn bytes(&mut self) -> &mut Receiver<T, W> {
        &mut self.bytes
    }
}

#[inline]
fn value<M: Typed>(length: usize, copy: impl FnOnce(&mut [u8]) -> usize) -> Result<M, RecvError> {
    if length != size_of::<M>() {
        let available = size_of::<M>() as u64;
        return Err(PeerViolation::LengthOutOfRange { length: length as u64, available }.into());
    }
    let mut value = M::new_zeroed();
    copy(value.as_mut_bytes());
    Ok(value)
}
