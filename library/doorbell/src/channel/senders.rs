// SPDX-License-Identifier: MIT OR Apache-2.0
//! Senders that come and go.

use super::gather::Gather;
use super::makers::{Alive, Makers, Room, lock};
use super::ring_reader::RingReader;
use super::sender::Sender;
use crate::attach_error::AttachError;
use crate::peer::Trusted;
use crate::rendezvous::{Offer, RendezvousError, Segment};
use doorbell_core::channel::layout::Lanes;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

/// Gives out senders to one receiver, of which up to a number may be
/// there at once. Clones give out the same.
///
/// The receiver is at its end ([`RecvError::Closed`](super::RecvError::Closed)) when this, its
/// clones and all senders that they gave out are dropped, and not before: however many places were
/// never taken, or were taken and left.
#[derive(Clone, Debug)]
pub struct Senders(Arc<Alive>);

/// A channel from threads that come and go to one: up to `most` senders at once, each with a ring
/// of at least `capacity` bytes.
///
/// ```
/// let (senders, mut gather) = doorbell::channel::senders(8, 4096)?;
/// for number in 0..3_u8 {
///     let senders = senders.clone();
///     std::thread::spawn(move || senders.sender().unwrap().send(&[number]).unwrap());
/// }
/// drop(senders);
/// let mut sum = 0;
/// for message in &mut gather {
///     sum += message?.1[0];
/// }
/// assert_eq!(sum, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`pair`](super::pair()).
pub fn senders(most: u32, capacity: u64) -> Result<(Senders, Gather<Trusted>), RendezvousError> {
    made(most, capacity, false)
}

/// A channel from any number of threads to one: a sender is cloned,
/// and each clone has a ring of at least `capacity` bytes.
///
/// ```
/// let (sender, mut gather) = doorbell::channel::mpsc(4096)?;
/// for number in 0..20_u8 {
///     let mut sender = sender.clone();
///     std::thread::spawn(move || sender.send(&[number]).unwrap());
/// }
/// drop(sender);
/// assert_eq!(gather.iter().map(|message| message.unwrap().1[0]).sum::<u8>(), 190);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`pair`](super::pair()).
pub fn mpsc(capacity: u64) -> Result<(CloneSender, Gather<Trusted>), RendezvousError> {
    let (senders, gather) = made(FIRST, capacity, true)?;
    Ok((CloneSender { sender: senders.sender().expect("nobody else has the segment"), senders }, gather))
}

/// So many places there are before a sender is cloned more often.
const FIRST: u32 = 4;

fn made(most: u32, capacity: u64, grows: bool) -> Result<(Senders, Gather<Trusted>), RendezvousError> {
    let segment = segment(most, capacity)?;
    let state = Arc::clone(segment.state(0).expect("lanes have a bell"));
    let mut gather = Gather::at(&segment, 0).expect("nobody else has the segment");
    let makers = Arc::new(Makers::at(state));
    gather.ends_with(Arc::clone(&makers));
    let room = Mutex::new(Room { segments: vec![segment], next: most, grows });
    Ok((Senders(Arc::new(Alive { makers, room, capacity })), gather))
}

fn segment(lanes: u32, capacity: u64) -> Result<Arc<Segment>, RendezvousError> {
    let lanes = Lanes::new(lanes, 1, capacity).ok_or(RendezvousError::CannotLayOut { lanes, capacity })?;
    Ok(Arc::new(Segment::for_threads(&Offer::of_lanes(lanes))?))
}

impl Senders {
    /// Another sender. Its place is free again when it is dropped.
    ///
    /// # Errors
    /// [`AttachError::Taken`] if as many are there as may be; [`AttachError::HungUp`] never.
    pub fn sender(&self) -> Result<Sender<Trusted>, AttachError> {
        let mut room = lock(&self.0.room);
        let mut result = Err(AttachError::NoChannels);
        for segment in &room.segments {
            result = Sender::on_any(segment.attach_context()?);
            if !matches!(result, Err(AttachError::Taken { .. })) {
                break;
            }
        }
        if room.grows && matches!(result, Err(AttachError::Taken { .. })) {
            let lanes = room.next;
            let segment = segment(lanes, self.0.capacity).map_err(|_| AttachError::NoMemory)?;
            let attach_context = segment.attach_context()?;
            let readers: Result<_, _> =
                (0..lanes).map(|lane| RingReader::on(attach_context.clone(), lane)).collect();
            self.0.makers.add(readers?);
            result = Sender::on_any(attach_context);
            room.next = lanes.saturating_mul(2);
            room.segments.push(segment);
        }
        result.map(|sender| sender.kept_by(Arc::clone(&self.0)))
    }
}

/// A [`Sender`] that can be cloned: see [`mpsc`]. The receiver is at
/// its end when all clones are dropped.
#[derive(Debug)]
pub struct CloneSender {
    sender: Sender<Trusted>,
    senders: Senders,
}

impl Clone for CloneSender {
    /// # Panics
    /// If there is no memory for another ring.
    fn clone(&self) -> Self {
        let sender =
            self.senders.sender().unwrap_or_else(|error| panic!("no place for another sender: {error}"));
        Self { sender, senders: self.senders.clone() }
    }
}

impl Deref for CloneSender {
    type Target = Sender<Trusted>;

    fn deref(&self) -> &Self::Target {
        &self.sender
    }
}

impl DerefMut for CloneSender {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.sender
    }
}
