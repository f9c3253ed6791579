// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting in tokio (feature `tokio`).

mod bell;
mod duplex;
mod files;
mod gather;
mod publisher;
mod queue;
mod receiver;
mod sender;
mod service;
#[cfg(feature = "stream")]
mod stream;
mod subscriber;
mod turn;
#[cfg(feature = "zerocopy")]
mod typed;
mod watched;

pub use bell::AsyncBell;
pub use duplex::{AsyncDuplex, connect_async, connect_async_by};
pub use service::AsyncService;

use crate::error::WaitError;
use crate::wait::Listener;
use files::Files;
use std::future::poll_fn;
use std::task::{Context, Poll};
use turn::{Turn, take_turns};

/// An end of a channel, or a [bell](AsyncBell), that a tokio task
/// awaits. It never occupies a thread.
///
/// | around a | await |
/// |---|---|
/// | [`Receiver`](crate::channel::Receiver) | [`recv`](Self::recv), [`recv_into`](Self::recv_into) |
/// | [`Gather`](crate::channel::Gather) | [`recv`](#method.recv-1), [`recv_into`](#method.recv_into-1) |
/// | [`Subscriber`](crate::channel::broadcast::Subscriber) | [`recv_into`](#method.recv_into-2) |
/// | [`Sender`](crate::channel::Sender) | [`send`](Self::send), [`reserve`](Self::reserve): back-pressure is awaited |
/// | [`Publisher`](crate::channel::broadcast::Publisher) | [`publish`](Self::publish), while a subscriber holds it back |
/// | [`Bell`](crate::Bell) | [`wait`](Self::wait) |
/// | [`Popper`](crate::queue::Popper), [`Pusher`](crate::queue::Pusher) of a queue | [`pop`](Self::pop), [`push`](Self::push) |
/// | [`NotifyWaiter`](crate::NotifyWaiter) | [`wait`](#method.wait-1) |
///
/// With feature `zerocopy`, ends for values too; with feature `stream`, a
/// [`Receiver`](crate::channel::Receiver) and a [`Gather`](crate::channel::Gather) are a
/// `futures_core::Stream` of copies.
///
/// A [`Service`](crate::service::Service) is awaited by [`AsyncService`](crate::AsyncService).
/// In other runtimes register an end's [`file`](crate::channel::Receiver::file), and await
/// that it is readable whenever [`listen`](crate::channel::Receiver::listen) says false; the
/// example there runs in smol's reactor.
///
/// ```
/// use doorbell::Async;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (sender, receiver) = doorbell::channel::pair(4096)?;
/// let (mut sender, mut receiver) = (Async::new(sender)?, Async::new(receiver)?);
/// let sending = tokio::spawn(async move {
///     for number in 0..1000_u64 {
///         // Waits for the receiver whenever the ring is full.
///         sender.send(&number.to_ne_bytes()).await.unwrap();
///     }
/// });
/// for number in 0..1000_u64 {
///     assert_eq!(receiver.recv().await?[..], number.to_ne_bytes());
/// }
/// sending.await?;
/// # Ok(())
/// # }
/// ```
///
/// # What happens when …
///
/// **… the future is dropped before it is done?** Nothing is lost: no message, no wake-up, no room.
/// A message is taken, or sent, in the last step, after which nothing is awaited. So all of these
/// may stand in `select!` and under a time-out. (`recv_into` of a subscriber may by then have
/// overwritten what was in the caller's buffer.)
///
/// **… the peer dies?** As with the blocking calls: what was
/// committed is received, then the error names the peer.
///
/// **… the other side is always faster?** Each message received or
/// sent costs the task a part of its turn ([`tokio::task::coop`]):
/// others get theirs. So does a hostile peer's wake without a message.
///
/// **… I need a call that does not wait?** [`get_mut`](Self::get_mut)
/// lends the end out; do not block in it.
///
/// **… the end spins, or sleeps otherwise?** Not while it is awaited:
/// then it waits by one of its bell's eventfds, of which it takes a
/// waiter slot, and its [way of waiting](crate::wait) is not used.
#[derive(Debug)]
pub struct Async<E> {
    /// First: they go before the waiter slot does.
    files: Files,
    end: E,
    /// Has the wait that is under way slept?
    slept: bool,
}

// Nothing in it is pinned, whatever the end is.
impl<E> Unpin for Async<E> {}

/// What [`Async`] can await: a [`Bell`](crate::Bell), and the ends of
/// channels. Nobody else can implement it.
pub trait Awaitable: Listen {}
impl<E: Listen> Awaitable for E {}

/// What `Async` needs of an end.
pub trait Listen {
    /// Before anything is taken for it.
    ///
    /// # Errors
    /// [`WaitError::Forked`] if it is a forked child's copy.
    fn check_ours(&mut self) -> Result<(), WaitError>;

    /// Before the task sleeps: consumes tokens, arms, and looks whether there is something after
    /// all. If not, the waiters of which one gets a token when there is. `length` is that of
    /// the message that is to be sent.
    ///
    /// # Errors
    /// [`WaitError`].
    fn before_sleep(&mut self, length: u64)
    -> Result<Option<impl Iterator<Item = &mut Listener>>, WaitError>;

    /// All waiters that it can sleep as.
    fn listeners(&mut self) -> impl Iterator<Item = &mut Listener>;
}

/// An end for values, which is waited for as the end for bytes within it is.
#[cfg(feature = "zerocopy")]
pub trait OverBytes {
    /// That end.
    type Bytes: Listen;

    /// That end.
    fn over(&mut self) -> &mut Self::Bytes;
}

#[cfg(feature = "zerocopy")]
impl<E: OverBytes> Listen for E {
    fn check_ours(&mut self) -> Result<(), WaitError> {
        self.over().check_ours()
    }

    fn before_sleep(
        &mut self,
        length: u64,
    ) -> Result<Option<impl Iterator<Item = &mut Listener>>, WaitError> {
        self.over().before_sleep(length)
    }

    fn listeners(&mut self) -> impl Iterator<Item = &mut Listener> {
        self.over().listeners()
    }
}

impl<E: Awaitable> Async<E> {
    /// Registers `end` with the runtime of the calling task, in which it stays whoever awaits it.
    ///
    /// # Errors
    /// [`WaitError::NoWaiterSlot`]; [`WaitError::Forked`];
    /// [`WaitError::Os`] if the runtime cannot watch the file.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled, as [`AsyncFd`](tokio::io::unix::AsyncFd) does.
    /// (Where I/O is not enabled, an end that waits for nobody yet, a
    /// [`Gather`](crate::channel::Gather) without lanes, does so when it first waits.)
    pub fn new(mut end: E) -> Result<Self, WaitError> {
        end.check_ours()?;
        let mut files = Files::new();
        files.watch(end.listeners())?;
        Ok(Self { files, end, slept: false })
    }

    /// The end, for whatever does not wait.
    pub fn get_ref(&self) -> &E {
        &self.end
    }

    /// The end, for whatever does not wait.
    pub fn get_mut(&mut self) -> &mut E {
        &mut self.end
    }

    /// The end, to be waited for otherwise.
    pub fn into_inner(self) -> E {
        self.end
    }

    /// Waits until `attempt` gives something.
    async fn until<R, F: From<WaitError>>(
        &mut self,
        length: u64,
        mut attempt: impl FnMut(&mut E) -> Result<Option<R>, F>,
    ) -> Result<R, F> {
        poll_fn(|cx| self.poll_until(cx, length, &mut attempt)).await
    }

    /// As `until`. The order that loses no wake-up is: forget what was readable, consume the
    /// tokens, arm, look; then return. What is announced after the look leaves a token, and the
    /// runtime's epoll sees each token that is written.
    fn poll_until<R, F: From<WaitError>>(
        &mut self,
        cx: &mut Context<'_>,
        length: u64,
        mut attempt: impl FnMut(&mut E) -> Result<Option<R>, F>,
    ) -> Poll<Result<R, F>> {
        let polled = take_turns(cx, |cx| match attempt(&mut self.end).transpose() {
            Some(result) => Turn::Done(result),
            None => match self.prepare_sleep(cx, length) {
                Ok(true) => Turn::Asleep,
                Ok(false) => Turn::Again,
                Err(error) => Turn::Done(Err(error.into())),
            },
        });
        self.slept &= polled.is_pending();
        polled
    }

    /// True if the task is woken when there is something, and there is nothing now.
    fn prepare_sleep(&mut self, cx: &mut Context<'_>, length: u64) -> Result<bool, WaitError> {
        if !self.files.forget(cx)? {
            return Ok(false);
        }
        let Some(listeners) = self.end.before_sleep(length)? else { return Ok(false) };
        let mut sleeping: Vec<_> = listeners.collect();
        if !self.files.watch(sleeping.iter_mut().map(|listener| &mut **listener))? {
            return Ok(false);
        }
        let again = std::mem::replace(&mut self.slept, true);
        sleeping.iter().for_each(|listener| listener.counters().awaited(again));
        let used = sleeping.len();
        self.files.keep(used, self.end.listeners());
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::{Async, Listen, Listener, WaitError};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// Seems to have something whenever it is asked, and never has, as a hostile peer can look.
    struct Teaser;

    impl Listen for Teaser {
        fn check_ours(&mut self) -> Result<(), WaitError> {
            Ok(())
        }

        fn before_sleep(&mut self, _: u64) -> Result<Option<impl Iterator<Item = &mut Listener>>, WaitError> {
            Ok(None::<std::iter::Empty<&mut Listener>>)
        }

        fn listeners(&mut self) -> impl Iterator<Item = &mut Listener> {
            std::iter::empty()
        }
    }

    /// That the runtime ends a task's turn was all that ended its
    /// poll: never, where the runtime is told not to.
    #[test]
    fn an_end_that_always_seems_to_have_something_does_not_keep_a_task_from_its_time_out() {
        for constrained in [true, false] {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let (told, tells) = channel();
            std::thread::spawn(move || {
                let ended = runtime.block_on(async {
                    let mut teaser = Async::new(Teaser).unwrap();
                    let never = teaser.until(0, |_| Ok::<Option<()>, WaitError>(None));
                    let soon = Duration::from_millis(5);
                    if constrained {
                        tokio::time::timeout(soon, never).await
                    } else {
                        tokio::time::timeout(soon, tokio::task::coop::unconstrained(never)).await
                    }
                });
                told.send(ended.is_err()).unwrap();
            });
            assert_eq!(tells.recv_timeout(Duration::from_secs(60)), Ok(true), "hung");
        }
    }
}
