// SPDX-License-Identifier: MIT OR Apache-2.0
//! The publishing end of a broadcast in tokio.

use super::{Async, Listen};
use crate::channel::SendError;
use crate::channel::broadcast::Publisher;
use crate::error::WaitError;
use crate::wait::{Listener, Wait};

impl<W: Wait> Listen for Publisher<W> {
    fn check_ours(&mut self) -> Result<(), WaitError> {
        Publisher::check_ours(self)
    }

    fn before_sleep(
        &mut self,
        length: u64,
    ) -> Result<Option<impl Iterator<Item = &mut Listener>>, WaitError> {
        Ok(self.arm(length)?.map(|listener| [listener].into_iter()))
    }

    fn listeners(&mut self) -> impl Iterator<Item = &mut Listener> {
        Publisher::listeners(self)
    }
}

impl<W: Wait> Async<Publisher<W>> {
    /// Publishes `message`. Waits while a subscriber that may do so holds it back.
    ///
    /// Cancel safe: if the future is dropped, nobody received the message. Subscribers are admitted
    /// between two calls, with [`get_mut`](Self::get_mut).
    ///
    /// # Errors
    /// As [`Publisher::publish`].
    pub async fn publish(&mut self, message: &[u8]) -> Result<(), SendError> {
        let length = message.len() as u64;
        self.until(length, |publisher| match publisher.try_publish(message) {
            Err(SendError::Full) => Ok(None),
            result => result.map(Some),
        })
        .await
    }
}
