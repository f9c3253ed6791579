// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of any type that serde knows, in tokio (feature `serde`).

use super::{Async, OverBytes};
use crate::channel::{Receiver, RecvError, SendError, Sender, ValueError, ValueReceiver, ValueSender};
use crate::peer::Trust;
use crate::wait::Wait;
use serde::{Serialize, de::DeserializeOwned};

impl<M: Serialize, T: Trust, W: Wait> OverBytes for ValueSender<M, T, W> {
    type Bytes = Sender<T, W>;

    fn over(&mut self) -> &mut Self::Bytes {
        self.bytes()
    }
}

impl<M: DeserializeOwned, T: Trust, W: Wait> OverBytes for ValueReceiver<M, T, W> {
    type Bytes = Receiver<T, W>;

    fn over(&mut self) -> &mut Self::Bytes {
        self.bytes()
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
