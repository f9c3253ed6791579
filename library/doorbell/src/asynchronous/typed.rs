// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of one type in tokio (feature `zerocopy`).

use super::{Async, OverBytes};
use crate::channel::{Receiver, RecvError, SendError, Sender, Typed, TypedReceiver, TypedSender};
use crate::peer::Trust;
use crate::wait::Wait;

impl<M: Typed, T: Trust, W: Wait> OverBytes for TypedSender<M, T, W> {
    type Bytes = Sender<T, W>;

    fn over(&mut self) -> &mut Self::Bytes {
        self.bytes()
    }
}

impl<M: Typed, T: Trust, W: Wait> OverBytes for TypedReceiver<M, T, W> {
    type Bytes = Receiver<T, W>;

    fn over(&mut self) -> &mut Self::Bytes {
        self.bytes()
    }
}

impl<M: Typed, T: Trust, W: Wait> Async<TypedSender<M, T, W>> {
    /// Sends a value. Waits while there is no room.
    ///
    /// Cancel safe: if the future is dropped, the value was not sent.
    ///
    /// # Errors
    /// As [`TypedSender::send`].
    pub async fn send(&mut self, value: &M) -> Result<(), SendError> {
        self.until(size_of::<M>() as u64, |sender| match sender.try_send(value) {
            Err(SendError::Full) => Ok(None),
            result => result.map(Some),
        })
        .await
    }
}

impl<M: Typed, T: Trust, W: Wait> Async<TypedReceiver<M, T, W>> {
    /// The next value. Waits while there is none.
    ///
    /// Cancel safe: if the future is dropped, no value was taken.
    ///
    /// # Errors
    /// As [`TypedReceiver::recv`].
    pub async fn recv(&mut self) -> Result<M, RecvError> {
        self.until(0, TypedReceiver::try_recv).await
    }
}
