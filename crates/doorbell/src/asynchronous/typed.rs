// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of one type in tokio (feature `zerocopy`).

use super::{Async, Listen};
use crate::channel::{RecvError, SendError, Typed, TypedReceiver, TypedSender};
use crate::error::WaitError;
use crate::peer::Trust;
use crate::wait::{Listener, Wait};

impl<M: Typed, T: Trust, W: Wait> Listen for TypedSender<M, T, W> {
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

impl<M: Typed, T: Trust, W: Wait> Listen for TypedReceiver<M, T, W> {
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
