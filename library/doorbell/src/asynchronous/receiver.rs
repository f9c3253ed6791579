// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving end of a lane in tokio.

use super::{Async, Listen};
use crate::channel::{Message, Receiver, RecvError};
use crate::error::WaitError;
use crate::peer::Trust;
use crate::wait::{Listener, Wait};
use std::iter::once;

impl<T: Trust, W: Wait> Listen for Receiver<T, W> {
    fn check_ours(&mut self) -> Result<(), WaitError> {
        Receiver::check_ours(self)
    }

    fn before_sleep(&mut self, _: u64) -> Result<Option<impl Iterator<Item = &mut Listener>>, WaitError> {
        let ready = self.arm()?;
        Ok((!ready).then(|| once(self.listener())))
    }

    fn listeners(&mut self) -> impl Iterator<Item = &mut Listener> {
        once(self.listener())
    }
}

impl<T: Trust, W: Wait> Async<Receiver<T, W>> {
    /// The next message. Waits while there is none.
    ///
    /// Cancel safe: if the future is dropped, no message was taken. The message is received when
    /// this end is used the next time, or by [`Message::release`].
    ///
    /// # Errors
    /// As [`Receiver::recv`].
    pub async fn recv(&mut self) -> Result<Message<'_, T>, RecvError> {
        let found = self.until(0, Receiver::poll).await?;
        Ok(self.end.message(found))
    }

    /// Receives the next message into `to`, whose content it replaces. Waits while there is none.
    ///
    /// Cancel safe: if the future is dropped, no message was taken, and `to` is as it was.
    ///
    /// # Errors
    /// As [`Receiver::recv_into`].
    pub async fn recv_into(&mut self, to: &mut Vec<u8>) -> Result<(), RecvError> {
        self.recv().await?.try_take_into(to)
    }
}
