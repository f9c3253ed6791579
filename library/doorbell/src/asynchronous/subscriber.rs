// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving end of a broadcast in tokio.

use super::{Async, Listen};
use crate::channel::RecvError;
use crate::channel::broadcast::Subscriber;
use crate::error::WaitError;
use crate::peer::Trust;
use crate::wait::{Listener, Wait};
use std::iter::once;

impl<T: Trust, W: Wait> Listen for Subscriber<T, W> {
    fn check_ours(&mut self) -> Result<(), WaitError> {
        Subscriber::check_ours(self)
    }

    fn before_sleep(&mut self, _: u64) -> Result<Option<impl Iterator<Item = &mut Listener>>, WaitError> {
        let ready = self.arm()?;
        Ok((!ready).then(|| once(self.listener())))
    }

    fn listeners(&mut self) -> impl Iterator<Item = &mut Listener> {
        once(self.listener())
    }
}

impl<T: Trust, W: Wait> Async<Subscriber<T, W>> {
    /// Receives the next message into `to`, whose content it replaces. Waits while there is none.
    /// Returns how many messages were missed directly before it.
    ///
    /// Cancel safe: if the future is dropped, no message was taken. What was in `to` may be lost.
    ///
    /// # Errors
    /// As [`Subscriber::recv_into`].
    pub async fn recv_into(&mut self, to: &mut Vec<u8>) -> Result<u64, RecvError> {
        self.until(0, |subscriber| subscriber.try_recv_into(to)).await
    }
}
