// SPDX-License-Identifier: MIT OR Apache-2.0
//! A message that was received and still lies in the ring.

use super::error::RecvError;
use super::held::Held;
use super::ring_reader::RingReader;
use crate::peer::{Trust, Trusted};
use doorbell_core::channel::lane::Found;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// A message in the ring. It is received, and its room the sender's again, when the receiver is
/// used the next time, or by [`release`](Self::release). Dropping it does nothing, so that the
/// receiver can be used where there was none:
///
/// ```
/// # let (mut sender, mut receiver) = doorbell::channel::pair(4096)?;
/// # sender.send(b"message")?;
/// loop {
///     match receiver.try_recv()? {
///         Some(message) => println!("{}", message.len()),
///         None => {
///             if !receiver.listen()? {
///                 break; // to the event loop
///             }
///         }
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// From a [`Trusted`] sender it is a `&[u8]`, without a copy. From an untrusted one it is copied
/// out, because its bytes may change as long as they lie where the sender can write;
/// [`as_ptr`](Self::as_ptr) is for those who know how to read such memory.
pub struct Message<'a, T: Trust> {
    reader: &'a mut RingReader,
    found: Found,
    trust: PhantomData<T>,
}

impl<'a, T: Trust> Message<'a, T> {
    #[inline]
    pub(super) fn new(reader: &'a mut RingReader, found: Found) -> Self {
        reader.lend(found);
        Self { reader, found, trust: PhantomData }
    }

    /// Done with it: the sender may write there again. For one who will not use the receiver for a
    /// while, and whose sender may be waiting for room.
    #[inline]
    pub fn release(self) {
        self.reader.put_back();
    }

    /// Its length in bytes. Copied once: the peer cannot change it.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "an empty message is a message")]
    pub fn len(&self) -> usize {
        self.here().len()
    }

    /// A copy. As always, a lack of memory ends the process;
    /// [`recv_into`](super::Receiver::recv_into) reports it.
    pub fn to_vec(&self) -> Vec<u8> {
        self.here().to_vec()
    }

    /// Replaces the content of `to` by a copy. Allocates only if `to`
    /// has less room than ever needed.
    pub fn copy_to_vec(&self, to: &mut Vec<u8>) {
        self.here().copy_to_vec(to);
    }

    /// A copy, and [`release`](Self::release).
    pub fn into_vec(self) -> Vec<u8> {
        let copy = self.to_vec();
        self.release();
        copy
    }

    /// As `copy_to_vec`, for a length that a peer chose; then `release`.
    pub(crate) fn try_take_into(self, to: &mut Vec<u8>) -> Result<(), RecvError> {
        let length = self.len();
        to.try_reserve(length.saturating_sub(to.len())).map_err(|_| RecvError::NoMemory { length })?;
        self.copy_to_vec(to);
        self.release();
        Ok(())
    }

    /// Copies the first bytes, as many as there are and fit. Returns how many.
    #[inline]
    pub fn copy_to(&self, to: &mut [u8]) -> usize {
        self.here().copy_to(to)
    }

    /// Where the message lies, for [`len`](Self::len) bytes, as long as `self` lives.
    ///
    /// An untrusted sender may be writing there at this moment. Read with volatile or atomic
    /// accesses, and only once what you check.
    pub fn as_ptr(&self) -> *const u8 {
        self.here().as_ptr()
    }

    #[inline(always)]
    fn here(&self) -> Held<'_, T> {
        Held::new(&self.reader.lane, self.found)
    }
}

impl Deref for Message<'_, Trusted> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.here().bytes()
    }
}

impl<T: Trust> fmt::Debug for Message<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message").field("len", &self.len()).finish_non_exhaustive()
    }
}
