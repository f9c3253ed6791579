// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages: byte strings of any length, from one sender to one
//! receiver, between threads or processes.
//!
//! Between threads:
//!
//! ```
//! let (mut sender, mut receiver) = doorbell::channel::pair(1 << 16)?;
//! std::thread::spawn(move || sender.send(b"hello").unwrap());
//! let message = receiver.recv()?;
//! assert_eq!(&message[..], b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Between processes, over a [rendezvous](crate::rendezvous). The maker
//! of the memory says how many lanes it has, of which size; then each
//! side attaches to its end of a lane. Two lanes make a conversation.
//!
//! ```
//! use doorbell::channel::{Lanes, Receiver, Sender};
//! use doorbell::rendezvous::{Segment, Offer, Connection, socket};
//! use std::sync::Arc;
//!
//! let (ours, theirs) = socket::pair()?;
//! // The other process. It trusts nobody, hence copies.
//! let other = std::thread::spawn(move || {
//!     let connection: Connection = socket::join_over(theirs).unwrap();
//!     let mut requests: Receiver = Receiver::attach(&connection, 0).unwrap();
//!     let mut answers: Sender = Sender::attach(&connection, 1).unwrap();
//!     let request = requests.recv().unwrap().to_vec();
//!     answers.send(&request).unwrap();
//! });
//! let lanes = Lanes::new(2, 2, 1 << 16).expect("two lanes of 64 KiB fit");
//! let segment = Arc::new(Segment::new(&Offer::of_lanes(lanes))?);
//! let connection: Connection = socket::host_over(ours, &segment)?;
//! let mut requests: Sender = Sender::attach(&connection, 0)?;
//! let mut answers: Receiver = Receiver::attach(&connection, 1)?;
//! requests.send(b"ping")?;
//! assert_eq!(answers.recv()?.to_vec(), b"ping");
//! other.join().unwrap();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to find | look at |
//! |---|---|
//! | sending: copying, in place, in batches, and what happens when there is no room | [`Sender`] |
//! | receiving: copying, in place, in an event loop | [`Receiver`] |
//! | many senders, one receiver | [`mpsc`], whose senders are cloned; [`senders`] of which a fixed number may be there; [`Gather`] |
//! | one sender, many receivers | [`broadcast`] |
//! | values of one type, as they lie in memory | `Typed` (feature `zerocopy`) |
//! | any of these ends in a tokio task | `Async` (feature `tokio`) |
//! | what lies where in memory | [`doorbell_core::channel::layout`] |
//! | how a message travels, and what a killed or hostile peer can do | [`doorbell_core::channel::lane`] |
//!
//! What has strings, lists and variants is written by a serializer of your choice:
//!
//! ```
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize, Debug, PartialEq)]
//! enum Order {
//!     Buy { symbol: String, shares: u32 },
//!     Cancel(Vec<u64>),
//! }
//!
//! let (mut sender, mut receiver) = doorbell::channel(4096)?;
//! sender.send(&postcard::to_allocvec(&Order::Cancel(vec![7, 8]))?)?;
//! // A copy is read, which no sender can change any more.
//! let order: Order = postcard::from_bytes(&receiver.recv()?.to_vec())?;
//! assert_eq!(order, Order::Cancel(vec![7, 8]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Trust
//!
//! [`Untrusted`](crate::peer::Untrusted) is a type, and the default of a
//! [`Connection`](crate::rendezvous::Connection). The peer of an untrusted connection may write
//! anything anywhere at any moment: what it writes is copied once and checked, a
//! lie is a [`PeerViolation`](crate::PeerViolation), and no message is lent out as a reference,
//! because its bytes may still change. With a [`Trusted`] peer a [`Message`] is a `&[u8]` and a
//! [`Slot`] a `&mut [u8]` in the shared memory itself.
//!
//! Give each untrusted peer a segment of its own: whoever shares a segment can write all over it.
//!
//! # Death
//!
//! A receiver gets every message that was committed, and is then told which peer went. A successor
//! may attach to the same lane: it continues a dead sender's lane after the last committed
//! message, and gets again what a dead receiver had not released.
//!
//! | the two ends are in | an end left in order | an end whose process died |
//! |---|---|---|
//! | host and joiner | `Closed` | `PeerGone`; the end is free |
//! | two joiners of one segment | `Closed` | `PeerGone` of [`UNMET`](crate::peer::PeerId::UNMET), told by the host; the end is free |
//! | the same, and the host has died | `PeerGone` of the host whenever there is no message | the same; nobody is left who could free an end |
//! | parent and forked child ([`for_children`](crate::rendezvous::Segment::for_children)) | `Closed` | nothing: use deadlines |
//!
//! A process that forked lives on for the others while its child keeps a copy of the connection.
//! Hanging up in order is told all the same; for a death that must show at once, start children by
//! `exec`, which closes the copies.

pub mod broadcast;
mod bulk;
mod distance;
mod error;
mod fence;
mod gather;
mod held;
mod iter;
mod lane;
mod makers;
mod message;
mod receiver;
mod recv_batch;
mod ring_reader;
mod sender;
mod senders;
mod slot;
#[cfg(feature = "zerocopy")]
mod typed;

pub use crate::attach_error::AttachError;
pub use doorbell_core::channel::layout::Lanes;
pub use error::{RecvError, SendError};
#[cfg(feature = "stream")]
pub(crate) use gather::Polled;
pub use gather::{Gather, GatherError};
pub use held::Held;
pub use iter::{GatherIter, Iter};
pub use message::Message;
pub use receiver::Receiver;
pub use recv_batch::RecvBatch;
pub use sender::{Batch, RoomFor, Sender};
pub use senders::{CloneSender, Senders, mpsc, senders};
pub use slot::Slot;
#[cfg(feature = "zerocopy")]
pub use typed::{Typed, TypedBatch, TypedReceiver, TypedSender};

pub use crate::directory::Ends;

use crate::peer::Trusted;
use crate::rendezvous::{Offer, RendezvousError, Segment};
use std::sync::Arc;

/// A channel between two threads of this process, with a ring of at least `capacity` bytes.
///
/// The longest message takes three eighths of the ring.
///
/// A `capacity` of 0 is the smallest ring, of 64 bytes, and no hand-over: that a message was taken
/// is known when the receiver gives back its room, which another process may never do, and a sender
/// that waits for it pays a second sleep for each message. Who must know that its message was dealt
/// with is [answered](crate::service::Caller).
///
/// # Errors
/// [`RendezvousError::CannotLayOut`] if no ring can be that large; [`RendezvousError::Map`] if
/// there is no memory or no descriptor left.
pub fn pair(capacity: u64) -> Result<(Sender<Trusted>, Receiver<Trusted>), RendezvousError> {
    pair_waiting_by(capacity)
}

/// Both ends of a channel between threads.
pub type Pair<W> = (Sender<Trusted, W>, Receiver<Trusted, W>);

/// As [`pair`], with a chosen [way of waiting](crate::wait) on both sides.
///
/// # Errors
/// As [`pair`].
pub fn pair_waiting_by<W: crate::wait::Wait + Default>(capacity: u64) -> Result<Pair<W>, RendezvousError> {
    let lanes = Lanes::new(1, 1, capacity).ok_or(RendezvousError::CannotLayOut { lanes: 1, capacity })?;
    let segment = Arc::new(Segment::for_threads(&Offer::of_lanes(lanes))?);
    let sender = Sender::at_waiting_by(&segment, 0).expect("nobody else has the segment");
    let receiver = Receiver::at_waiting_by(&segment, 0).expect("nobody else has the segment");
    Ok((sender, receiver))
}

/// A channel from `senders` threads to one, with a ring of at least `capacity` bytes for each.
///
/// # Errors
/// As [`pair`].
pub fn many(senders: u32, capacity: u64) -> Result<(Vec<Sender<Trusted>>, Gather<Trusted>), RendezvousError> {
    let (all, gather) = self::senders(senders, capacity)?;
    let senders = (0..senders).map(|_| all.sender().expect("nobody else has the segment")).collect();
    Ok((senders, gather))
}
