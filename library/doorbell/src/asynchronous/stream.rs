// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receiving ends as streams (feature `stream`).

use super::Async;
use crate::channel::{Gather, GatherError, Polled, Receiver, RecvError};
use crate::peer::Trust;
use crate::wait::Wait;
use futures_core::Stream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Copies of the messages. Ends when the sender has left, or, after the error that tells of it,
/// has died or lied; then it may be polled on, and goes on with the next sender.
///
/// ```
/// use doorbell::Async;
/// use futures_core::Stream;
/// use std::{future::poll_fn, pin::Pin};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (mut sender, receiver) = doorbell::channel::pair(4096)?;
/// let mut messages = Async::new(receiver)?;
/// sender.send(b"one")?;
/// drop(sender);
/// let mut next = async || poll_fn(|cx| Pin::new(&mut messages).poll_next(cx)).await;
/// assert_eq!(next().await, Some(Ok(b"one".to_vec())));
/// assert_eq!(next().await, None);
/// # Ok(())
/// # }
/// ```
impl<T: Trust, W: Wait> Stream for Async<Receiver<T, W>> {
    type Item = Result<Vec<u8>, RecvError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(match ready!(self.poll_until(cx, 0, Receiver::poll_to_the_end)) {
            Ok(Some(found)) => {
                let mut copy = Vec::new();
                Some(self.end.message(found).try_take_into(&mut copy).map(|()| copy))
            }
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        })
    }
}

/// Lane numbers and copies of the messages. Ends when no sender is left, after the errors that
/// tell of those who died or lied; then it may be polled on, and goes on with the next sender.
impl<T: Trust, W: Wait> Stream for Async<Gather<T, W>> {
    type Item = Result<(usize, Vec<u8>), GatherError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let poll = |gather: &mut Gather<T, W>| {
            gather.poll_lanes().map(|polled| match polled {
                Polled::Found(found) => Some(Some(found)),
                Polled::Nothing => None,
                Polled::Over(_) => Some(None),
            })
        };
        Poll::Ready(match ready!(self.poll_until(cx, 0, poll)) {
            Ok(Some(found)) => {
                let (lane, message) = self.end.message(found);
                let mut copy = Vec::new();
                let copied = message.try_take_into(&mut copy);
                let copied = copied.map_err(|error| GatherError { lane: Some(lane), error });
                Some(copied.map(|()| (lane, copy)))
            }
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        })
    }
}
