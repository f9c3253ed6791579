// SPDX-License-Identifier: MIT OR Apache-2.0
//! A service in tokio.

use crate::descriptor;
use crate::rendezvous::RendezvousError;
use crate::service::{ClientId, Duplex, Service, ServiceError};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

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
    /// A duplicate, which outlives nothing: the service is dropped behind it.
    file: AsyncFd<OwnedFd>,
    service: Service,
}

impl AsyncService {
    /// Registers `service` with the runtime of the calling task.
    ///
    /// # Errors
    /// [`RendezvousError::Os`] if the runtime cannot watch it.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled, as [`AsyncFd`] does.
    pub fn new(service: Service) -> Result<Self, RendezvousError> {
        let duplicate = descriptor::duplicate(service.as_fd())
            .map_err(|errno| RendezvousError::Os { call: "fcntl(F_DUPFD_CLOEXEC)", errno })?;
        // SAFETY: an `OwnedFd` is open and the same until it is dropped, and nothing takes it out.
        let file = unsafe { AsyncFd::register_with_interest(duplicate, Interest::READABLE) };
        Ok(Self { file: file.map_err(|error| failed(&error.into()))?, service })
    }

    /// Waits for the next client, which is this caller's alone, as [`Service::accept`] does.
    ///
    /// Cancel safe: a client that has come is given to the next call.
    ///
    /// # Errors
    /// As [`Service::accept`].
    pub async fn accept(&mut self) -> Result<Duplex, RendezvousError> {
        loop {
            if let Some(client) = self.service.accept_timeout(Duration::ZERO)? {
                return Ok(client);
            }
            self.readable().await.map_err(|error| failed(&error))?;
        }
    }

    /// The next message of any client, and whose it is, as [`Service::recv`] does.
    ///
    /// Cancel safe: a message is taken in the last step, after which nothing is awaited.
    ///
    /// # Errors
    /// As [`Service::recv`].
    pub async fn recv(&mut self) -> Result<(ClientId, Vec<u8>), ServiceError> {
        loop {
            if let Some(received) = self.service.try_recv()? {
                return Ok(received);
            }
            self.readable().await.map_err(|error| failed(&error))?;
        }
    }

    /// Forgets that it was readable before the next look: what comes behind that is an edge.
    async fn readable(&self) -> std::io::Result<()> {
        self.file.readable().await?.clear_ready();
        Ok(())
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

fn failed(error: &std::io::Error) -> RendezvousError {
    RendezvousError::Os { call: "epoll_ctl", errno: Errno::from_io_error(error).unwrap_or(Errno::IO) }
}
