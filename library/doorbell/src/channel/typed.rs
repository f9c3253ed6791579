// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages that are values of one type (feature `zerocopy`).

use super::error::{RecvError, SendError};
use super::message::Message;
use super::receiver::Receiver;
use super::sender::Sender;
use super::slot::Slot;
use crate::deadline::Deadline;
use crate::peer::{Trust, Untrusted};
use crate::wait::{Adaptive, Wait};
use doorbell_core::violation::PeerViolation;
use std::marker::PhantomData;
use std::mem::replace;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A type whose values travel as their bytes: plain data without
/// padding, for which every combination of bytes is a value. All
/// three are derived, and the compiler refuses what does not qualify.
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

    /// Sends all of `values`, in as few records as take them. Waits while there is no room. A value
    /// of a record takes its own size in the ring, and no more.
    ///
    /// # Errors
    /// As [`Sender::send`]; what went before has been sent.
    pub fn send_all(&mut self, values: &[M]) -> Result<(), SendError> {
        let fitting = (self.bytes.longest() as usize).checked_div(size_of::<M>()).unwrap_or(1);
        values.chunks(fitting.max(1)).try_for_each(|values| self.bytes.send(values.as_bytes()))
    }

    /// Room for a batch of up to `most` values, which are sent
    /// together when it is dropped: one record, one ring, and nothing
    /// in the ring beside the values. Waits while there is no room.
    ///
    /// ```
    /// use doorbell::channel::{TypedReceiver, TypedSender};
    ///
    /// let (sender, receiver) = doorbell::channel::pair(4096)?;
    /// let mut sender = TypedSender::<u64, _, _>::new(sender);
    /// let mut receiver = TypedReceiver::<u64, _, _>::new(receiver);
    /// let mut batch = sender.batch(16)?;
    /// for number in 0..3 {
    ///     batch.push(&number)?;
    /// }
    /// drop(batch);
    /// assert_eq!(receiver.recv_batch()?, [0, 1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Sender::reserve`].
    #[inline]
    pub fn batch(&mut self, most: usize) -> Result<TypedBatch<'_, M, T, W>, SendError> {
        Ok(TypedBatch::new(self.bytes.reserve(most.saturating_mul(size_of::<M>()))?))
    }

    /// As [`batch`](Self::batch), but does not wait.
    ///
    /// # Errors
    /// As [`Sender::try_reserve`].
    #[inline]
    pub fn try_batch(&mut self, most: usize) -> Result<TypedBatch<'_, M, T, W>, SendError> {
        Ok(TypedBatch::new(self.bytes.try_reserve(most.saturating_mul(size_of::<M>()))?))
    }

    /// The sender of bytes behind it, for deadlines and drops.
    pub fn bytes(&mut self) -> &mut Sender<T, W> {
        &mut self.bytes
    }
}

/// Values that are sent together when this is dropped. See [`TypedSender::batch`].
#[derive(Debug)]
pub struct TypedBatch<'a, M: Typed, T: Trust, W: Wait> {
    /// Until it is dropped.
    slot: Option<Slot<'a, T, W>>,
    /// Bytes of the values in it.
    used: usize,
    message: PhantomData<fn(M)>,
}

impl<'a, M: Typed, T: Trust, W: Wait> TypedBatch<'a, M, T, W> {
    #[inline]
    fn new(slot: Slot<'a, T, W>) -> Self {
        const { assert!(size_of::<M>() > 0, "values without bytes cannot be counted in a batch") };
        Self { slot: Some(slot), used: 0, message: PhantomData }
    }

    /// Adds a value.
    ///
    /// # Errors
    /// [`SendError::Full`] if there are as many in it as it was made for.
    #[inline]
    pub fn push(&mut self, value: &M) -> Result<(), SendError> {
        match &mut self.slot {
            Some(slot) if slot.size() - self.used >= size_of::<M>() => {
                self.used += slot.write(self.used, value.as_bytes());
                Ok(())
            }
            _ => Err(SendError::Full),
        }
    }
}

impl<M: Typed, T: Trust, W: Wait> Drop for TypedBatch<'_, M, T, W> {
    #[inline]
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take().filter(|_| self.used > 0) {
            // A copy in a forked child sends nothing.
            let _ = slot.commit_first(self.used);
        }
    }
}

/// A [`Receiver`] of values of one type, one by one or as many at once as were sent so. They are
/// sound whoever sent them.
#[derive(Debug)]
pub struct TypedReceiver<M: Typed, T: Trust = Untrusted, W: Wait = Adaptive> {
    bytes: Receiver<T, W>,
    /// Copies of a record's values, those from `next` on not received yet.
    copies: Vec<M>,
    next: usize,
}

impl<M: Typed, T: Trust, W: Wait> TypedReceiver<M, T, W> {
    /// Receives values from `bytes`.
    pub fn new(bytes: Receiver<T, W>) -> Self {
        Self { bytes, copies: Vec::new(), next: 0 }
    }

    /// The next value. Waits while there is none.
    ///
    /// # Errors
    /// As [`Receiver::recv`]; [`PeerViolation::LengthOutOfRange`] if a message is not made of
    /// values. Such a message is received, that is, gone.
    #[inline]
    pub fn recv(&mut self) -> Result<M, RecvError> {
        if let Some(value) = self.copied() {
            return Ok(value);
        }
        let Self { bytes, copies, next } = self;
        first(bytes.recv()?, copies, next)
    }

    /// The next value, if there is one.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    #[inline]
    pub fn try_recv(&mut self) -> Result<Option<M>, RecvError> {
        if let Some(value) = self.copied() {
            return Ok(Some(value));
        }
        let Self { bytes, copies, next } = self;
        bytes.try_recv()?.map(|message| first(message, copies, next)).transpose()
    }

    /// The next value. Waits until `deadline` while there is none. `None` if none came.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_deadline(&mut self, deadline: Option<Deadline>) -> Result<Option<M>, RecvError> {
        if let Some(value) = self.copied() {
            return Ok(Some(value));
        }
        let Self { bytes, copies, next } = self;
        bytes.recv_deadline(deadline)?.map(|message| first(message, copies, next)).transpose()
    }

    /// The values that were sent together, as far as they have not been received. Waits while there
    /// are none. They lie in the ring if the sender is trusted and their alignment at most
    /// eight, until the receiver is used the next time; else they are a copy.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    #[inline]
    pub fn recv_batch(&mut self) -> Result<&[M], RecvError> {
        if self.next < self.copies.len() {
            return Ok(self.rest());
        }
        let Self { bytes, copies, next } = self;
        all(bytes.recv()?, copies, next)
    }

    /// As [`recv_batch`](Self::recv_batch), but does not wait: there may be none.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    #[inline]
    pub fn try_recv_batch(&mut self) -> Result<&[M], RecvError> {
        if self.next < self.copies.len() {
            return Ok(self.rest());
        }
        let Self { bytes, copies, next } = self;
        match bytes.try_recv()? {
            Some(message) => all(message, copies, next),
            None => Ok(&[]),
        }
    }

    /// The receiver of bytes behind it, for event loops.
    pub fn bytes(&mut self) -> &mut Receiver<T, W> {
        &mut self.bytes
    }

    #[inline]
    fn copied(&mut self) -> Option<M> {
        let copy = self.copies.get(self.next)?;
        self.next += 1;
        M::read_from_bytes(copy.as_bytes()).ok()
    }

    fn rest(&mut self) -> &[M] {
        let from = replace(&mut self.next, self.copies.len());
        &self.copies[from..]
    }
}

/// How many values are there in `length` bytes?
#[inline]
fn count<M: Typed>(length: usize) -> Result<usize, RecvError> {
    let size = size_of::<M>();
    if length == size {
        return Ok(1);
    }
    match length.checked_rem(size) {
        Some(0) if length > 0 => Ok(length / size),
        _ => Err(PeerViolation::LengthOutOfRange { length: length as u64, available: size as u64 }.into()),
    }
}

/// The first value of a message, after those beyond have been copied out.
#[inline]
fn first<M: Typed, T: Trust>(
    message: Message<'_, T>,
    copies: &mut Vec<M>,
    next: &mut usize,
) -> Result<M, RecvError> {
    let mut value = M::new_zeroed();
    if count::<M>(message.len())? > 1 {
        copy_out(&message, copies)?;
        *next = 1;
        value.as_mut_bytes().copy_from_slice(copies[0].as_bytes());
    } else {
        message.copy_to(value.as_mut_bytes());
    }
    Ok(value)
}

/// All values of a message.
#[inline]
fn all<'a, M: Typed, T: Trust>(
    message: Message<'a, T>,
    copies: &'a mut Vec<M>,
    next: &mut usize,
) -> Result<&'a [M], RecvError> {
    let count = count::<M>(message.len())?;
    if T::TRUSTED && align_of::<M>() <= 8 {
        // SAFETY: a record begins at a multiple of eight in a mapping of pages and
        // lies in the ring in one piece; any bytes are a value, and `count` values
        // have as many as the message. A trusted sender does not write there until it
        // is released, for which the receiver must be used, of which 'a is a borrow.
        return Ok(unsafe { std::slice::from_raw_parts(message.as_ptr().cast::<M>(), count) });
    }
    copy_out(&message, copies)?;
    *next = count;
    Ok(copies)
}

fn copy_out<M: Typed, T: Trust>(message: &Message<'_, T>, copies: &mut Vec<M>) -> Result<(), RecvError> {
    let length = message.len();
    let count = count::<M>(length)?;
    copies.clear();
    copies.try_reserve(count).map_err(|_| RecvError::NoMemory { length })?;
    copies.resize_with(count, M::new_zeroed);
    message.copy_to(copies.as_mut_slice().as_mut_bytes());
    Ok(())
}
