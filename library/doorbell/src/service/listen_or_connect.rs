// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whoever comes first is the service.

use super::{Duplex, Service, connect, listen};
use crate::rendezvous::RendezvousError;
use std::path::Path;

/// What [`listen_or_connect`] gives.
#[expect(clippy::large_enum_variant, reason = "it is given once, and taken apart at once")]
#[derive(Debug)]
pub enum Opened {
    /// Nobody listened: this process does now.
    Service(Service),
    /// Somebody listens, and this process is a client.
    Client(Duplex),
}

/// Connects to the service `name`, or, if nobody listens there, listens: of
/// several processes that call this at once, one becomes the service and
/// the others its clients. When that one dies, the others call this again.
///
/// ```
/// use doorbell::service::{Opened, listen_or_connect};
///
/// # let folder = std::env::temp_dir().join(format!("doorbell-first-{}", std::process::id()));
/// # let name = folder.with_extension("sock");
/// let Opened::Service(mut first) = listen_or_connect(&name)? else { panic!("nobody was there") };
/// let Opened::Client(mut second) = listen_or_connect(&name)? else { panic!("the first is there") };
/// second.send(b"hello")?;
/// assert_eq!(first.recv()?.1, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`connect`], never [`RendezvousError::NoOwner`]; as [`listen`], never
/// [`RendezvousError::Owned`].
pub fn listen_or_connect(name: impl AsRef<Path>) -> Result<Opened, RendezvousError> {
    let name = name.as_ref();
    loop {
        match connect(name) {
            Err(RendezvousError::NoOwner { .. }) => {}
            result => return result.map(Opened::Client),
        }
        match listen(name) {
            // Another was faster, and may have gone again.
            Err(RendezvousError::Owned { .. }) => {}
            result => return result.map(Opened::Service),
        }
    }
}
