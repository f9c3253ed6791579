// SPDX-License-Identifier: MIT OR Apache-2.0
//! Senders that come and go.

use super::error::AttachError;
use super::gather::Gather;
use super::sender::Sender;
use crate::peer::Trusted;
use crate::rendezvous::{Offer, RendezvousError, Segment};
use doorbell_core::channel::layout::Lanes;
use std::sync::Arc;

/// Gives out senders to one receiver, of which up to a number may be there at once. Clones give out the same.
#[derive(Clone, Debug)]
pub struct Senders {
    segment: Arc<Segment>,
}

/// A channel from threads that come and go to one: up to `most` senders at once, each with a ring of at least `capacity` bytes.
///
/// ```
/// let (senders, mut gather) = doorbell::channel::senders(8, 4096)?;
/// for number in 0..3_u8 {
///     let senders = senders.clone();
///     std::thread::spawn(move || senders.sender().unwrap().send(&[number]).unwrap());
/// }
/// let mut sum = 0;
/// for _ in 0..3 {
///     sum += gather.recv()?.1[0];
/// }
/// assert_eq!(sum, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`pair`](super::pair()).
pub fn senders(most: u32, capacity: u64) -> Result<(Senders, Gather<Trusted>), RendezvousError> {
    let lanes =
        Lanes::new(most, 1, capacity).ok_or(RendezvousError::CannotLayOut { lanes: most, capacity })?;
    let segment = Arc::new(Segment::for_threads(&Offer::of_lanes(lanes))?);
    let gather = Gather::at(&segment, 0).expect("nobody else has the segment");
    Ok((Senders { segment }, gather))
}

impl Senders {
    /// Another sender. Its place is free again when it is dropped.
    ///
    /// # Errors
    /// [`AttachError::Taken`] if as many are there as may be; [`AttachError::HungUp`] never.
    pub fn sender(&self) -> Result<Sender<Trusted>, AttachError> {
        Sender::on_any(self.segment.attach_context()?)
    }
}
