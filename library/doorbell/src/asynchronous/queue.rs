// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues and permits in tokio.

use super::{Async, Listen};
use crate::error::WaitError;
use crate::notify::NotifyWaiter;
use crate::queue::{PopError, Popper, PushError, Pusher};
use crate::wait::Listener;
use std::iter::once;

macro_rules! listens {
    ($(<$($of:tt),*> $end:ty),*) => {$(
        impl<$($of),*> Listen for $end {
            /// A forked child has a copy, which is another one.
            fn check_ours(&mut self) -> Result<(), WaitError> {
                Ok(())
            }

            fn before_sleep(&mut self, _: u64) -> Result<Option<impl Iterator<Item = &mut Listener>>, WaitError> {
                let ready = self.arm()?;
                Ok((!ready).then(|| once(self.watcher.listener())))
            }

            fn listeners(&mut self) -> impl Iterator<Item = &mut Listener> {
                once(self.watcher.listener())
            }
        }
    )*};
}

listens!(<T> Popper<T>, <T> Pusher<T>, <'n> NotifyWaiter<'n>);

impl<T> Async<Popper<T>> {
    /// The next value. Waits while there is none.
    ///
    /// ```
    /// use doorbell::Async;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let work = doorbell::queue::<u64>(8);
    /// let mut popper = Async::new(work.popper()?)?;
    /// std::thread::spawn(move || work.push(7));
    /// assert_eq!(popper.pop().await?, 7);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cancel safe: if the future is dropped, no value was taken.
    ///
    /// # Errors
    /// As [`Queue::pop`](crate::queue::Queue::pop).
    pub async fn pop(&mut self) -> Result<T, PopError> {
        self.until(0, |popper| match popper.try_pop() {
            Err(PopError::Empty) => Ok(None),
            result => result.map(Some),
        })
        .await
    }
}

impl<T> Async<Pusher<T>> {
    /// Pushes `value`. Waits while there is no room.
    ///
    /// Cancel safe: if the future is dropped, the value was not pushed, and is dropped with it.
    ///
    /// # Errors
    /// As [`Queue::push`](crate::queue::Queue::push).
    pub async fn push(&mut self, value: T) -> Result<(), PushError<T>> {
        let mut kept = Some(value);
        let attempt = |pusher: &mut Pusher<T>| match kept.take().map(|value| pusher.try_push(value)) {
            Some(Err(PushError::Full(value))) => {
                kept = Some(value);
                Ok(None)
            }
            // It is kept until it was pushed, or could not be.
            pushed => Ok::<_, WaitError>(pushed),
        };
        match (self.until(0, attempt).await, kept) {
            (Ok(pushed), _) => pushed,
            (Err(error), Some(value)) => Err(PushError::Wait(value, error)),
            (Err(_), None) => unreachable!("what was not pushed is kept"),
        }
    }
}

impl Async<NotifyWaiter<'_>> {
    /// Takes a permit. Waits while there is none.
    ///
    /// Cancel safe: if the future is dropped, no permit was taken.
    ///
    /// # Errors
    /// [`WaitError`].
    pub async fn wait(&mut self) -> Result<(), WaitError> {
        self.until(0, |waiter| Ok(waiter.try_wait().then_some(()))).await
    }
}
