// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several messages with one ring.

use super::Sender;
use crate::channel::error::SendError;
use crate::channel::slot::Slot;
use crate::deadline::Deadline;
use crate::peer::Trust;
use crate::wait::Wait;

impl<T: Trust, W: Wait> Sender<T, W> {
    /// A batch: what is pushed into it is seen at once by a receiver that is awake, and the ring
    /// comes once, when the batch is dropped.
    ///
    /// ```
    /// let (mut sender, mut receiver) = doorbell::channel::pair(4096)?;
    /// let mut batch = sender.batch();
    /// for part in [b"one", b"two"] {
    ///     batch.push(part)?;
    /// }
    /// drop(batch);
    /// assert_eq!(receiver.recv()?.to_vec(), b"one");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn batch(&mut self) -> Batch<'_, T, W> {
        Batch { sender: self }
    }
}

/// Several messages with one ring. See [`Sender::batch`].
#[derive(Debug)]
pub struct Batch<'a, T: Trust, W: Wait> {
    sender: &'a mut Sender<T, W>,
}

impl<T: Trust, W: Wait> Batch<'_, T, W> {
    /// Adds a message, if there is room.
    ///
    /// # Errors
    /// [`SendError`].
    #[inline(always)]
    pub fn push(&mut self, message: &[u8]) -> Result<(), SendError> {
        self.sender.push(message)
    }

    /// Adds a message. While there is no room it rings and waits
    /// until `deadline`; for ever if there is none.
    ///
    /// # Errors
    /// [`SendError`].
    #[inline]
    pub fn push_deadline(&mut self, message: &[u8], deadline: Option<Deadline>) -> Result<(), SendError> {
        let room = self.sender.room(message.len() as u64, deadline)?;
        self.sender.put(&room, message);
        Ok(())
    }

    /// Room for a message that is written in place, if there is any. Committing it does not ring.
    ///
    /// # Errors
    /// [`SendError`].
    #[inline]
    pub fn try_reserve(&mut self, most: usize) -> Result<Slot<'_, T, W>, SendError> {
        self.sender.try_reserve(most).map(Slot::quietly)
    }
}

impl<T: Trust, W: Wait> Drop for Batch<'_, T, W> {
    #[inline]
    fn drop(&mut self) {
        self.sender.ring();
    }
}
