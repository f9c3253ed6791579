// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving end of many lanes in tokio.

use super::{Async, Listen};
use crate::channel::{Gather, GatherError, Message};
use crate::error::WaitError;
use crate::peer::Trust;
use crate::wait::{Listener, Wait};

impl<T: Trust, W: Wait> Listen for Gather<T, W> {
    fn check_ours(&mut self) -> Result<(), WaitError> {
        Gather::check_ours(self)
    }

    fn before_sleep(&mut self, _: u64) -> Result<Option<impl Iterator<Item = &mut Listener>>, WaitError> {
        let ready = self.arm()?;
        Ok((!ready).then(|| Gather::listeners(self)))
    }

    fn listeners(&mut self) -> impl Iterator<Item = &mut Listener> {
        Gather::listeners(self)
    }
}

impl<T: Trust, W: Wait> Async<Gather<T, W>> {
    /// The next message of any lane, and the lane's number. Waits while there is none.
    ///
    /// Cancel safe: if the future is dropped, no message was taken. Lanes are added and removed
    /// between two calls, with [`get_mut`](Self::get_mut).
    ///
    /// # Errors
    /// As [`Gather::recv`].
    pub async fn recv(&mut self) -> Result<(usize, Message<'_, T>), GatherError> {
        let found = self.until(0, Gather::poll).await?;
        Ok(self.end.message(found))
    }

    /// Receives the next message of any lane into `to`, whose content it replaces. Returns the
    /// lane's number. Waits while there is none.
    ///
    /// Cancel safe: if the future is dropped, no message was taken, and `to` is as it was.
    ///
    /// # Errors
    /// As [`Gather::recv_into`].
    pub async fn recv_into(&mut self, to: &mut Vec<u8>) -> Result<usize, GatherError> {
        let (lane, message) = self.recv().await?;
        message.try_take_into(to).map_err(|error| GatherError { lane: Some(lane), error })?;
        Ok(lane)
    }
}
