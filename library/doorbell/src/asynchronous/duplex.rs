// SPDX-License-Identifier: MIT OR Apache-2.0
//! Both directions to one process in tokio.

use super::Async;
use super::watched::Watched;
use crate::channel::{Receiver, RecvError, SendError, Sender};
use crate::error::WaitError;
use crate::peer::{PeerId, Untrusted};
use crate::rendezvous::{Connection, Greeted, Join, RendezvousError, connect_by, no_owner, try_connect};
use crate::service::{Duplex, paths};
use rustix::io::Errno;
use std::future::poll_fn;
use std::path::Path;
use std::task::Poll;

/// A [`Duplex`] that tokio tasks await: what [`connect_async`] gives, or one that
/// [`AsyncService::accept`](super::AsyncService::accept) gave, by [`new`](Self::new).
///
/// ```
/// use doorbell::{AsyncService, connect_async};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let name = std::env::temp_dir().join(format!("doorbell-duplex-{}.sock", std::process::id()));
/// let mut service = AsyncService::new(doorbell::listen(&name)?)?;
/// let client = tokio::spawn(async move {
///     let mut service = connect_async(&name).await.unwrap();
///     service.send(b"hello").await.unwrap();
///     service.recv().await.unwrap()
/// });
/// let (who, hello) = service.recv().await?;
/// assert_eq!(hello, b"hello");
/// service.send(who, b"and hello").await?;
/// assert_eq!(client.await?, b"and hello");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncDuplex {
    sender: Async<Sender<Untrusted>>,
    receiver: Async<Receiver<Untrusted>>,
    peer: PeerId,
}

impl AsyncDuplex {
    /// Registers both ends with the runtime of the calling task.
    ///
    /// # Errors
    /// As [`Async::new`].
    ///
    /// # Panics
    /// As [`Async::new`].
    pub fn new(duplex: Duplex) -> Result<Self, WaitError> {
        let peer = duplex.peer();
        let (sender, receiver) = duplex.split();
        Ok(Self { sender: Async::new(sender)?, receiver: Async::new(receiver)?, peer })
    }

    /// Who is at the other end.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// Sends `message`. Waits while there is no room. Cancel safe, as [`Async::send`].
    ///
    /// # Errors
    /// As [`Sender::send`].
    pub async fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
        self.sender.send(message).await
    }

    /// The next message, copied. Waits while there is none. Cancel safe, as [`Async::recv`].
    ///
    /// # Errors
    /// As [`Receiver::recv`].
    pub async fn recv(&mut self) -> Result<Vec<u8>, RecvError> {
        let mut message = Vec::new();
        self.receiver.recv_into(&mut message).await?;
        Ok(message)
    }

    /// The two ends, for two tasks, for messages where they lie, and
    /// for messages that are written in place.
    pub fn split(self) -> (Async<Sender<Untrusted>>, Async<Receiver<Untrusted>>) {
        (self.sender, self.receiver)
    }
}

/// As [`connect`](crate::connect), and occupies no thread while the service does not answer. Put a
/// time-out around it: this waits for ever.
///
/// Cancel safe: if the future is dropped, it hangs up.
///
/// # Errors
/// As [`connect`](crate::connect).
///
/// # Panics
/// As [`Async::new`].
pub async fn connect_async(name: impl AsRef<Path>) -> Result<AsyncDuplex, RendezvousError> {
    connect_async_by(name, &Join::default()).await
}

/// As [`connect_async`], with a say in whose service it may be; the
/// patience of `join` is not asked.
///
/// # Errors
/// As [`connect`](crate::connect).
///
/// # Panics
/// As [`Async::new`].
pub async fn connect_async_by(name: impl AsRef<Path>, join: &Join) -> Result<AsyncDuplex, RendezvousError> {
    let paths = paths(name.as_ref())?;
    for path in &paths {
        let socket = match try_connect(path) {
            Err(RendezvousError::NoOwner { .. }) => continue,
            Ok(Some(socket)) => socket,
            // Nobody tells when its queue of callers has room: that alone is waited for by a thread.
            Ok(None) => {
                let (join, path) = (join.clone(), path.clone());
                let waiting = tokio::task::spawn_blocking(move || connect_by(&join, &path));
                waiting.await.map_err(|_| RendezvousError::NoAnswer(Errno::CONNRESET))??
            }
            Err(error) => return Err(error),
        };
        let connection = answered(join, join.greet(socket)?).await?;
        return AsyncDuplex::new(Duplex::of_client(&connection)?).map_err(|error| match error {
            WaitError::Os { call, errno } => RendezvousError::Os { call, errno },
            error => RendezvousError::Wait(error),
        });
    }
    Err(no_owner(paths))
}

/// Joins a host once it has answered.
async fn answered(join: &Join, mut greeted: Greeted) -> Result<Connection, RendezvousError> {
    let failed = |(call, errno)| RendezvousError::Os { call, errno };
    let file = Watched::new(greeted.socket()).map_err(failed)?;
    loop {
        if let Some(offer) = greeted.try_offer()? {
            return join.take_at_once(greeted, offer);
        }
        let readable = poll_fn(|cx| match file.forget(cx) {
            Ok(false) => Poll::Pending,
            known => Poll::Ready(known),
        });
        readable.await.map_err(failed)?;
    }
}
