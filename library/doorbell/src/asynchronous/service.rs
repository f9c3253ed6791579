// SPDX-License-Identifier: MIT OR Apache-2.0
//! A service in tokio.

use super::turn::{Turn, take_turns};
use super::watched::Watched;
use crate::channel::SendError;
use crate::error::{Unmade, WaitError};
use crate::rendezvous::RendezvousError;
use crate::service::{ClientId, Duplex, Service, ServiceError};
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

/// A [`Service`] that a tokio task awaits. It never occupies a thread.
///
/// ```
/// use doorbell::AsyncService;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let name = std::env::temp_dir().join(format!("doorbell-async-{}.sock", std::process::id()));
/// let mut service = AsyncService::new(doorbell::listen(&name)?)?;
/// let client = std::thread::spawn(move || doorbell::connect(name).unwrap().send(b"hello"));
/// let (_, message) = service.recv().await?;
/// assert_eq!(message, b"hello");
/// client.join().unwrap()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncService {
    file: Watched,
    service: Service,
}

impl AsyncService {
    /// Registers `service` with the runtime of the calling task.
    ///
    /// # Errors
    /// [`RendezvousError::Os`] if the runtime cannot watch it.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled, as [`AsyncFd`](tokio::io::unix::AsyncFd) does.
    pub fn new(service: Service) -> Result<Self, RendezvousError> {
        Ok(Self { file: Watched::new(&service).map_err(failed)?, service })
    }

    /// Waits for the next client, which is this caller's alone, as [`Service::accept`] does.
    ///
    /// Cancel safe: a client that has come is given to the next call.
    ///
    /// # Errors
    /// As [`Service::accept`].
    pub async fn accept(&mut self) -> Result<Duplex, RendezvousError> {
        poll_fn(|cx| self.poll_until(cx, |service| service.accept_timeout(Duration::ZERO))).await
    }

    /// The next message of any client, and whose it is, as [`Service::recv`] does.
    ///
    /// Cancel safe: a message is taken in the last step, after which nothing is awaited.
    ///
    /// # Errors
    /// As [`Service::recv`].
    pub async fn recv(&mut self) -> Result<(ClientId, Vec<u8>), ServiceError> {
        poll_fn(|cx| self.poll_until(cx, Service::try_recv)).await
    }

    /// Sends `message` to `client`. Waits while there is no room: others are not served meanwhile,
    /// so put a time-out around it.
    ///
    /// Cancel safe: if the future is dropped, the message was not sent.
    ///
    /// # Errors
    /// As [`Service::send_timeout`], never [`SendError::Full`] or [`SendError::TimedOut`].
    pub async fn send(&mut self, client: ClientId, message: &[u8]) -> Result<(), SendError> {
        let mut room = None;
        poll_fn(|cx| {
            take_turns(cx, |cx| match self.service.send(client, message) {
                Err(SendError::Full) => {
                    match poll_room(&mut self.service, client, message.len(), &mut room, cx) {
                        Ok(turn) => turn,
                        Err(error) => Turn::Done(Err(error.into())),
                    }
                }
                result => Turn::Done(result),
            })
        })
        .await
    }

    fn poll_until<R, F: From<RendezvousError>>(
        &mut self,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut(&mut Service) -> Result<Option<R>, F>,
    ) -> Poll<Result<R, F>> {
        let Self { file, service } = self;
        take_turns(cx, |cx| {
            if let Some(result) = attempt(service).transpose() {
                return Turn::Done(result);
            }
            match file.forget(cx) {
                Ok(false) => Turn::Asleep,
                Ok(true) => Turn::Again,
                Err(unmade) => Turn::Done(Err(failed(unmade).into())),
            }
        })
    }

    /// The service, for whatever does not wait.
    pub fn get_mut(&mut self) -> &mut Service {
        &mut self.service
    }

    /// The service, to be waited for otherwise.
    pub fn into_inner(self) -> Service {
        self.service
    }
}

/// Has the task woken when `client` has room for `length` bytes. `room` is the file that tells of
/// it, made when it is wanted first.
fn poll_room<R>(
    service: &mut Service,
    client: ClientId,
    length: usize,
    room: &mut Option<Watched>,
    cx: &mut Context<'_>,
) -> Result<Turn<R>, WaitError> {
    let failed = |(call, errno)| WaitError::Os { call, errno };
    let Some(sender) = service.sender(client) else { return Ok(Turn::Again) };
    let file = match room {
        Some(file) => file,
        None => room.insert(Watched::new(sender.file()?).map_err(failed)?),
    };
    // Before it arms: what comes after that is an edge.
    if file.forget(cx).map_err(failed)? {
        return Ok(Turn::Again);
    }
    Ok(if sender.listen(length)? { Turn::Again } else { Turn::Asleep })
}

fn failed((call, errno): Unmade) -> RendezvousError {
    RendezvousError::Os { call, errno }
}
