// SPDX-License-Identifier: MIT OR Apache-2.0
//! A message that is being written in place.

use super::error::SendError;
use super::sender::Sender;
use crate::peer::{Trust, Trusted};
use crate::wait::Wait;
use doorbell_core::channel::lane::Room;
use std::ops::{Deref, DerefMut};

/// Room in the ring for one message. Nobody sees it before [`commit`](Self::commit); dropping it
/// instead gives the room back.
///
/// With a [`Trusted`] receiver it is a `&mut [u8]`, whose bytes are whatever an earlier message
/// left. With an untrusted one it is written by [`write`](Self::write): the peer can write there
/// too, so that no reference may exist.
///
/// A forked child has a copy of it, which it cannot send: the room is its parent's. (In memory that
/// both share, what it writes there is written in the parent's message.)
#[derive(Debug)]
pub struct Slot<'a, T: Trust, W: Wait> {
    sender: &'a mut Sender<T, W>,
    room: Room,
    rings: bool,
}

impl<'a, T: Trust, W: Wait> Slot<'a, T, W> {
    pub(super) fn new(sender: &'a mut Sender<T, W>, room: Room) -> Self {
        Self { sender, room, rings: true }
    }

    pub(super) fn quietly(self) -> Self {
        Self { rings: false, ..self }
    }

    /// How many bytes it has.
    #[inline]
    pub fn size(&self) -> usize {
        // At most the size of the ring, which is mapped.
        self.room.most() as usize
    }

    /// Where the message is to be written, for [`size`](Self::size) bytes, as long as `self` lives.
    ///
    /// An untrusted receiver may be writing there too. Write with
    /// volatile or atomic accesses, and read nothing back.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.sender.lane.at(self.room.payload())
    }

    /// Copies `bytes` to offset `at` of the message, as far as they fit. Returns how many did.
    #[inline]
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> usize {
        self.sender.lane.write_part::<T>(&self.room, at, bytes)
    }

    /// Sends the whole slot as a message.
    ///
    /// # Errors
    /// [`SendError::Forked`].
    #[inline]
    pub fn commit(self) -> Result<(), SendError> {
        let size = self.size();
        self.commit_first(size)
    }

    /// Sends the first `length` bytes as a message; all if the slot has fewer.
    ///
    /// # Errors
    /// [`SendError::Forked`].
    #[inline]
    pub fn commit_first(self, length: usize) -> Result<(), SendError> {
        let sender = self.sender;
        if !sender.is_ours_at_once() {
            return Err(SendError::Forked);
        }
        if self.rings {
            sender.publish_and_ring(&self.room, length as u64);
        } else {
            sender.index.publish(&self.room, length as u64, &sender.lane);
        }
        Ok(())
    }
}

impl<W: Wait> Deref for Slot<'_, Trusted, W> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the room lies in the ring (`Room`). It belongs to the sender until it is published, the
        // sender is borrowed mutably, and a trusted receiver touches only what was published.
        unsafe { std::slice::from_raw_parts(self.sender.lane.at(self.room.payload()), self.size()) }
    }
}

impl<W: Wait> DerefMut for Slot<'_, Trusted, W> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.sender.lane.at(self.room.payload()), self.size()) }
    }
}
