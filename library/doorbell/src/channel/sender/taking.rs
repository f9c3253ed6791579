// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a sending end is taken.

use super::Sender;
use crate::attach_error::AttachError;
use crate::channel::fence::Fence;
use crate::channel::lane::{End, Lane, Partner};
use crate::channel::makers::Alive;
use crate::peer::{Trust, Trusted};
use crate::rendezvous::{AttachContext, Connection, Segment};
use crate::wait::{Listener, Wait};
use doorbell_core::channel::lane;
use std::marker::PhantomData;
use std::sync::Arc;

impl<T: Trust> Sender<T> {
    /// Takes the sending end of lane `lane` of the segment shared with the peer of `connection`.
    ///
    /// The connection may be dropped: the end keeps the connection.
    ///
    /// ```
    /// use doorbell::channel::{Lanes, Receiver, Sender};
    /// use doorbell::rendezvous::{Connection, Offer, Segment, socket};
    /// use std::sync::Arc;
    ///
    /// let (ours, theirs) = socket::pair()?;
    /// // The other process.
    /// let other = std::thread::spawn(move || {
    ///     let connection: Connection = socket::join_over(theirs).unwrap();
    ///     let mut receiver: Receiver = Receiver::attach(&connection, 0).unwrap();
    ///     receiver.recv().unwrap().to_vec()
    /// });
    /// let segment = Arc::new(Segment::new(&Offer::of_lanes(Lanes::new(1, 1, 4096).unwrap()))?);
    /// let connection: Connection = socket::host_over(ours, &segment)?;
    /// let mut sender: Sender = Sender::attach(&connection, 0)?;
    /// sender.send(b"hello")?;
    /// assert_eq!(other.join().unwrap(), b"hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn attach(connection: &Connection<T>, lane: u32) -> Result<Self, AttachError> {
        Self::attach_waiting_by(connection, lane)
    }
}

impl<T: Trust, W: Wait + Default> Sender<T, W> {
    /// As [`attach`](Self::attach), with a chosen [way of waiting](crate::wait).
    ///
    /// ```
    /// use doorbell::channel::{Lanes, Sender};
    /// use doorbell::peer::Untrusted;
    /// use doorbell::rendezvous::{Connection, Offer, Segment, socket};
    /// use doorbell::wait::Futex;
    /// use std::sync::Arc;
    ///
    /// let (ours, theirs) = socket::pair()?;
    /// // The other process.
    /// let joining = std::thread::spawn(move || -> Connection { socket::join_over(theirs).unwrap() });
    /// let segment = Arc::new(Segment::new(&Offer::of_lanes(Lanes::new(1, 1, 4096).unwrap()))?);
    /// let connection: Connection = socket::host_over(ours, &segment)?;
    /// // While there is no room it sleeps, and never spins.
    /// let mut sender: Sender<Untrusted, Futex> = Sender::attach_waiting_by(&connection, 0)?;
    /// sender.send(b"it waits in the ring")?;
    /// # joining.join().unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn attach_waiting_by(connection: &Connection<T>, lane: u32) -> Result<Self, AttachError> {
        Self::on(connection.attach_context()?, lane)
    }

    /// Takes the sending end of the first lane that nobody sends on.
    ///
    /// ```
    /// use doorbell::channel::{AttachError, Lanes, Sender};
    /// use doorbell::rendezvous::{Connection, Offer, Segment, socket};
    /// use std::sync::Arc;
    ///
    /// let (ours, theirs) = socket::pair()?;
    /// // The other process.
    /// let joining = std::thread::spawn(move || -> Connection { socket::join_over(theirs).unwrap() });
    /// // Two lanes to one receiver.
    /// let segment = Arc::new(Segment::new(&Offer::of_lanes(Lanes::new(2, 1, 4096).unwrap()))?);
    /// let connection: Connection = socket::host_over(ours, &segment)?;
    /// let _first: Sender = Sender::attach_any(&connection)?;
    /// let _second: Sender = Sender::attach_any(&connection)?;
    /// let third: Result<Sender, _> = Sender::attach_any(&connection);
    /// assert!(matches!(third, Err(AttachError::Taken { .. })));
    /// # joining.join().unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AttachError::Taken`] if there is none; else as [`attach`](Self::attach).
    pub fn attach_any(connection: &Connection<T>) -> Result<Self, AttachError> {
        Self::on_any(connection.attach_context()?)
    }

    pub(in crate::channel) fn on_any(attach_context: AttachContext<'_>) -> Result<Self, AttachError> {
        let lanes = attach_context.segment.lanes().ok_or(AttachError::NoChannels)?.lanes();
        let mut result = Err(AttachError::NoChannels);
        for lane in 0..lanes {
            result = Self::on(attach_context.clone(), lane);
            if !matches!(result, Err(AttachError::Taken { .. })) {
                break;
            }
        }
        result
    }

    pub(in crate::channel) fn on(
        attach_context: AttachContext<'_>,
        number: u32,
    ) -> Result<Self, AttachError> {
        if !attach_context.segment.trusts::<T>() {
            return Err(AttachError::Untrusted);
        }
        let lane = Lane::new(attach_context, number)?;
        let end = End::take(&lane, &lane.control().sender, number)?;
        let index = match lane::Sender::attach(lane.capacity(), &lane) {
            Ok(index) => index,
            Err(violation) => {
                end.leave(&lane.control().sender);
                return Err(violation.into());
            }
        };
        let receiver = Partner::new(&lane, &lane.message_state);
        let listener = Listener::new(&lane.room_state, W::NAME);
        let way = W::default();
        let fence = Fence::new(index.tail());
        Ok(Self {
            lane,
            index,
            fence,
            end,
            receiver,
            way,
            listener,
            violation: None,
            trust: PhantomData,
            kept: None,
        })
    }
}

impl Sender<Trusted> {
    pub(in crate::channel) fn kept_by(self, alive: Arc<Alive>) -> Self {
        let mut sender = self;
        sender.kept = Some(alive);
        sender
    }

    /// As [`attach`](Self::attach), on a segment whose other users are all trusted: threads of this
    /// process, forked children.
    ///
    /// ```
    /// use doorbell::channel::{Lanes, Receiver, Sender};
    /// use doorbell::peer::Trusted;
    /// use doorbell::rendezvous::{Offer, Segment};
    ///
    /// let segment = Segment::for_threads(&Offer::of_lanes(Lanes::new(1, 1, 4096).unwrap()))?;
    /// let mut sender: Sender<Trusted> = Sender::at(&segment, 0)?;
    /// let mut receiver: Receiver<Trusted> = Receiver::at(&segment, 0)?;
    /// sender.send(b"hello")?;
    /// assert_eq!(&*receiver.recv()?, b"hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn at(segment: &Segment, lane: u32) -> Result<Self, AttachError> {
        Self::at_waiting_by(segment, lane)
    }
}

impl<W: Wait + Default> Sender<Trusted, W> {
    /// As [`at`](Self::at), with a chosen [way of waiting](crate::wait).
    ///
    /// ```
    /// use doorbell::channel::{Lanes, Receiver, Sender};
    /// use doorbell::peer::Trusted;
    /// use doorbell::rendezvous::{Offer, Segment};
    /// use doorbell::wait::Futex;
    ///
    /// let segment = Segment::for_threads(&Offer::of_lanes(Lanes::new(1, 1, 4096).unwrap()))?;
    /// let mut sender: Sender<Trusted, Futex> = Sender::at_waiting_by(&segment, 0)?;
    /// let mut receiver: Receiver<Trusted, Futex> = Receiver::at_waiting_by(&segment, 0)?;
    /// sender.send(b"hello")?;
    /// assert_eq!(&*receiver.recv()?, b"hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn at_waiting_by(segment: &Segment, lane: u32) -> Result<Self, AttachError> {
        Self::on(segment.attach_context()?, lane)
    }
}
