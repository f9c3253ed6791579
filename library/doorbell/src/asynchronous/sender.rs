// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sending end of a lane in tokio.

use super::{Async, Listen};
use crate::channel::{SendError, Sender, Slot};
use crate::error::WaitError;
use crate::peer::Trust;
use crate::wait::{Listener, Wait};
use std::iter::once;

impl<T: Trust, W: Wait> Listen for Sender<T, W> {
    fn check_ours(&mut self) -> Result<(), WaitError> {
        Sender::check_ours(self)
    }

    fn before_sleep(
        &mut self,
        length: u64,
    ) -> Result<Option<impl Iterator<Item = &mut Listener>>, WaitError> {
        let ready = self.arm(length)?;
        Ok((!ready).then(|| once(self.listener())))
    }

    fn listeners(&mut self) -> impl Iterator<Item = &mut Listener> {
        once(self.listener())
    }
}

impl<T: Trust, W: Wait> Async<Sender<T, W>> {
    /// Sends `message`. Waits while there is no room.
    ///
    /// Cancel safe: if the future is dropped, the message was not sent, nor any part of it.
    ///
    /// # Errors
    /// As [`Sender::send`].
    pub async fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
        let length = message.len() as u64;
        self.until(length, |sender| match sender.try_send(message) {
            Err(SendError::Full) => Ok(None),
            result => result.map(Some),
        })
        .await
    }

    /// Room for a message of up to `most` bytes that is written in
    /// place. Waits while there is none.
    ///
    /// Cancel safe: if the future is dropped, nothing was reserved.
    ///
    /// # Errors
    /// As [`Sender::reserve`].
    pub async fn reserve(&mut self, most: usize) -> Result<Slot<'_, T, W>, SendError> {
        let room = self.until(most as u64, |sender| sender.try_room(most as u64)).await?;
        Ok(self.end.slot(room))
    }
}
