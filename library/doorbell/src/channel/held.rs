// SPDX-License-Identifier: MIT OR Apache-2.0
//! One of several messages that were received and still lie in the ring.

use super::lane::Lane;
use crate::peer::{Trust, Trusted};
use doorbell_core::channel::lane::Found;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// One of the messages of a [`RecvBatch`](super::RecvBatch), where it lies. All are held until the
/// receiver is used the next time.
///
/// From a [`Trusted`] sender it is a `&[u8]`, without a copy; as a
/// [`Message`](super::Message) in everything else.
#[derive(Clone, Copy)]
pub struct Held<'a, T: Trust> {
    lane: &'a Lane,
    found: Found,
    trust: PhantomData<T>,
}

impl<'a, T: Trust> Held<'a, T> {
    /// The message `found`, which is not released while `lane` is borrowed.
    #[inline(always)]
    pub(super) fn new(lane: &'a Lane, found: Found) -> Self {
        Self { lane, found, trust: PhantomData }
    }

    /// Its length in bytes. Copied once: the peer cannot change it.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "an empty message is a message")]
    pub fn len(&self) -> usize {
        // At most the size of the ring, which is mapped.
        self.found.length() as usize
    }

    /// A copy.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = vec![0; self.len()];
        self.copy_to(&mut copy);
        copy
    }

    /// Replaces the content of `to` by a copy. Allocates only if `to`
    /// has less room than ever needed.
    pub fn copy_to_vec(&self, to: &mut Vec<u8>) {
        to.resize(self.len(), 0);
        self.copy_to(to);
    }

    /// Copies the first bytes, as many as there are and fit. Returns how many.
    #[inline]
    pub fn copy_to(&self, to: &mut [u8]) -> usize {
        self.lane.read::<T>(&self.found, to)
    }

    /// Where the message lies, for [`len`](Self::len) bytes, while the receiver is borrowed.
    ///
    /// An untrusted sender may be writing there at this moment. Read with volatile or atomic
    /// accesses, and only once what you check.
    pub fn as_ptr(&self) -> *const u8 {
        self.lane.at(self.found.payload())
    }
}

impl<'a> Held<'a, Trusted> {
    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        // SAFETY: the record lies in the ring (`Found`). A trusted sender does not write there until it is
        // released, for which the receiver must be used, of which 'a is a borrow.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len()) }
    }
}

impl Deref for Held<'_, Trusted> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes()
    }
}

impl<T: Trust> fmt::Debug for Held<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("len", &self.len()).finish_non_exhaustive()
    }
}
