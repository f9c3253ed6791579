// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bell in tokio.

use super::{Async, Listen};
use crate::bell::Bell;
use crate::error::WaitError;
use crate::wait::{Adaptive, Listener, Wait};
use std::iter::once;
use std::num::NonZeroU32;

/// A handle of a bell that a tokio task waits on. See [`Async`].
///
/// ```
/// use doorbell::{AsyncBell, Bell};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let waiter: Bell = Bell::new().unwrap();
/// let ringer = waiter.clone();
/// let mut waiter = AsyncBell::new(waiter).unwrap();
/// std::thread::spawn(move || ringer.ring());
/// assert_eq!(waiter.wait().await.unwrap().get(), 1);
/// # }
/// ```
pub type AsyncBell<W = Adaptive> = Async<Bell<W>>;

impl<W: Wait> Listen for Bell<W> {
    /// Children ring and wait by their parent's bells.
    fn check_ours(&mut self) -> Result<(), WaitError> {
        Ok(())
    }

    fn before_sleep(&mut self, _: u64) -> Result<Option<impl Iterator<Item = &mut Listener>>, WaitError> {
        let ready = self.arm()?;
        Ok((!ready).then(|| once(self.listener())))
    }

    fn listeners(&mut self) -> impl Iterator<Item = &mut Listener> {
        once(self.listener())
    }
}

impl<W: Wait> Async<Bell<W>> {
    /// Waits for a ring this handle has not heard. Returns how many there were.
    ///
    /// Cancel safe: rings are taken in the last step, after which nothing is awaited.
    ///
    /// # Errors
    /// As [`Bell::wait`].
    pub async fn wait(&mut self) -> Result<NonZeroU32, WaitError> {
        self.until(0, Bell::take_news).await
    }
}
