// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of any type that serde knows, in tokio (feature `serde`).

use super::{Async, Listen};
use crate::channel::{RecvError, SendError, ValueError, ValueReceiver, ValueSender};
use crate::error::WaitError;
use crate::peer::Trust;
use crate::wait::{Listener, Wait};
use serde::{Serialize, de::DeserializeOwned};

impl<M: Serialize, T: Trust, W: Wait> Listen for ValueSender<M, T, W> {
    fn before_sleep(
        &mut self,
        length: u64,
    ) -> Result<Option<impl Iterator<Item = &mut Listener>>, WaitError> {
        self.bytes().before_sleep(length)
    }

    fn listeners(&mut self) -> impl Iterator<Item = &mut Listener> {
        self.bytes().listeners()
    }
}

impl<M: DeserializeOwned, T: Trust, W: Wait> Listen for ValueReceiver<M, T, W> {
    fn before_sleep(
        &mut self,
        length: u64,
    ) -> Result<Option<impl Iterator<Item = &mut Listener>>, WaitError> {
        self.bytes().before_sleep(length)
    }

    fn listeners(&mut self) -> impl Iterator<Item = &mut Listener> {
        self.bytes().listeners()
    }
}

impl<M: Serialize, T: Trust, W: Wait> Async<ValueSender<M, T, W>> {
    /// Sends a value. Waits while there is no room.
    ///
    /// Cancel safe: if the future is dropped, the value was not sent.
    ///
    /// # Errors
    /// As [`ValueSender::send`].
    pub async fn send(&mut self, value: &M) -> Result<(), ValueError<SendError>> {
        let length = self.end.write(value)?;
        self.until(length, |sender| match sender.try_send_written() {
            Err(SendError::Full) => Ok(None),
            result => Ok(Some(result?)),
        })
        .await
    }
}

impl<M: DeserializeOwned, T: Trust, W: Wait> Async<ValueReceiver<M, T, W>> {
    /// The next value. Waits while there is none.
    ///
    /// Cancel safe: if the future is dropped, no value was taken.
    ///
    /// # Errors
    /// As [`ValueReceiver::recv`].
    pub async fn recv(&mut self) -> Result<M, ValueError<RecvError>> {
        self.until(0, ValueReceiver::try_recv).await
    }
}
