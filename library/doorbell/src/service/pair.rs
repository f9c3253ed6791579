// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two ends, one of which is sent to another process.

use super::duplex::{ANSWERS, Duplex, REQUESTS};
use super::ends::Unopened;
use crate::channel::Lanes;
use crate::rendezvous::{Join, Offer, RendezvousError, Segment, host_ahead, socket};
use std::sync::Arc;

/// Both directions between whoever has the first and whoever opens
/// the second, with rings of at least `capacity` bytes.
///
/// The second is sent to another process by [`Ends::send`](super::Ends::send), which opens it or
/// sends it on. What is sent into the first before that waits in the ring.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("doorbell-ends-{}", std::process::id()));
/// # let name = folder.with_extension("sock");
/// let mut service = doorbell::listen(&name)?;
/// // In another process, as a rule.
/// let client = std::thread::spawn(move || {
///     let mut service = doorbell::connect(&name).unwrap();
///     service.send(b"a channel of my own, please").unwrap();
///     let end = service.ends().recv().unwrap();
///     end.open().unwrap().send(b"thanks").unwrap();
/// });
/// let (who, _question) = service.recv()?;
/// let (mut ours, theirs) = doorbell::service::pair(64 << 10)?;
/// service.ends(who).expect("it waits").send(theirs)?;
/// assert_eq!(ours.recv()?, b"thanks");
/// client.join().unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`RendezvousError::CannotLayOut`] if no ring can be that large; [`RendezvousError::Map`],
/// [`RendezvousError::Os`] if there is no memory or no descriptor left.
pub fn pair(capacity: u64) -> Result<(Duplex, Unopened), RendezvousError> {
    let lanes = Lanes::new(2, 2, capacity).ok_or(RendezvousError::CannotLayOut { lanes: 2, capacity })?;
    let segment = Arc::new(Segment::new(&Offer::of_lanes(lanes))?);
    let (ours, theirs) = socket::pair()?;
    let connection = host_ahead(ours, &segment)?;
    Ok((Duplex::over(&connection, REQUESTS, ANSWERS)?, Unopened(theirs)))
}

impl Unopened {
    /// Opens it, if it is of a process of this process's user or root's.
    ///
    /// # Errors
    /// [`RendezvousError::OtherUser`] if another user's process made it;
    /// [`RendezvousError::Violation`] if it is no such end; else [`RendezvousError`].
    pub fn open(self) -> Result<Duplex, RendezvousError> {
        self.open_by(&Join::default())
    }

    /// As [`open`](Self::open), with a say in whose it may be, and how much memory and how many
    /// descriptors are taken for it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_by(self, join: &Join) -> Result<Duplex, RendezvousError> {
        Duplex::over(&join.ahead(self.0)?, ANSWERS, REQUESTS)
    }
}
