// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rivals, one file each. Each opens a link of both directions with room for at least [`depth`]
//! messages, where one can choose.

mod doorbell;
mod doorbell_many;
mod hand_over;
#[cfg(feature = "iceoryx2")]
mod iceoryx2;
mod ipc_channel;
mod mq;
mod parcel;
mod pipe;
mod rtrb;
mod unix;
mod values;

use crate::channels::link::{Kind, Link, Place};
use crate::library::{Crossbeam, CrossfireMany, CrossfirePair, Flume, Kanal};
use ::doorbell::peer::{Trusted, Untrusted};
use ::doorbell::wait::{Adaptive, Futex};
use rustix::net::SocketType;

/// How a side waits. Only what waits alike is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// Looks again and again; yields between if both sides share a CPU.
    Polls,
    /// Spins or yields for a while, then sleeps.
    SpinsThenSleeps,
    /// Sleeps in the kernel at once.
    Sleeps,
}

/// How many senders a link has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    Pair,
    Many,
}

/// A channel in one way of using it.
#[derive(Clone, Copy)]
pub struct Rival {
    pub name: &'static str,
    pub place: Place,
    pub shape: Shape,
    pub waiting: Waiting,
    /// The other sides of a comparison are set against the first of their kind that is ours.
    pub ours: bool,
    pub open: fn() -> Result<Box<dyn Link>, String>,
}

impl Rival {
    /// Can its link do this?
    pub fn serves(&self, kind: Kind) -> bool {
        (self.shape == Shape::Many) == (kind == Kind::Gather)
    }
}

/// All of them, for messages of `S` bytes. Ours come first among those that wait alike.
pub fn rivals<const S: usize>(place: Place) -> Vec<Rival> {
    use Waiting::{Polls, Sleeps, SpinsThenSleeps};
    let ours = |name, waiting, open| Rival { name, place, shape: Shape::Pair, waiting, ours: true, open };
    let theirs = |name, waiting, open| Rival { name, place, shape: Shape::Pair, waiting, ours: false, open };
    let many = |rival| Rival { shape: Shape::Many, ..rival };
    match place {
        Place::Threads => vec![
            ours("doorbell", Polls, doorbell::between_threads::<S, false, false>),
            theirs("rtrb", Polls, rtrb::polled::<S>),
            theirs("crossbeam-channel", Polls, values::pair::<S, true, Crossbeam>),
            theirs("crossfire", Polls, values::pair::<S, true, CrossfirePair>),
            theirs("kanal", Polls, values::pair::<S, true, Kanal>),
            theirs("flume", Polls, values::pair::<S, true, Flume>),
            ours("doorbell", SpinsThenSleeps, doorbell::between_threads::<S, true, true>),
            theirs("crossbeam-channel", SpinsThenSleeps, values::pair::<S, false, Crossbeam>),
            theirs("crossfire", SpinsThenSleeps, values::pair::<S, false, CrossfirePair>),
            theirs("kanal", SpinsThenSleeps, values::pair::<S, false, Kanal>),
            theirs("flume", SpinsThenSleeps, values::pair::<S, false, Flume>),
            many(ours("doorbell", Polls, || doorbell_many::threads::<S, Adaptive>(true))),
            many(theirs("crossbeam-channel", Polls, values::many::<S, true, Crossbeam>)),
            many(theirs("crossfire", Polls, values::many::<S, true, CrossfireMany>)),
            many(theirs("kanal", Polls, values::many::<S, true, Kanal>)),
            many(theirs("flume", Polls, values::many::<S, true, Flume>)),
            many(ours("doorbell", SpinsThenSleeps, || doorbell_many::threads::<S, Adaptive>(false))),
            many(theirs("crossbeam-channel", SpinsThenSleeps, values::many::<S, false, Crossbeam>)),
            many(theirs("crossfire", SpinsThenSleeps, values::many::<S, false, CrossfireMany>)),
            many(theirs("kanal", SpinsThenSleeps, values::many::<S, false, Kanal>)),
            many(theirs("flume", SpinsThenSleeps, values::many::<S, false, Flume>)),
        ],
        Place::Processes => vec![
            ours("doorbell", Polls, doorbell::polled::<S, Trusted>),
            ours("doorbell, untrusted", Polls, doorbell::polled::<S, Untrusted>),
            #[cfg(feature = "iceoryx2")]
            theirs("iceoryx2", Polls, || iceoryx2::pair::<S>(false)),
            ours("doorbell, futex", Sleeps, doorbell::waiting::<S, Trusted, Futex>),
            ours("doorbell, adaptive", Sleeps, doorbell::waiting::<S, Trusted, Adaptive>),
            ours("doorbell, untrusted, adaptive", Sleeps, doorbell::waiting::<S, Untrusted, Adaptive>),
            theirs("futex, by hand", Sleeps, hand_over::blocking::<S>),
            #[cfg(feature = "iceoryx2")]
            theirs("iceoryx2 with event", Sleeps, || iceoryx2::pair::<S>(true)),
            theirs("ipc-channel", Sleeps, ipc_channel::blocking::<S>),
            theirs("Unix stream", Sleeps, || unix::open::<S>(SocketType::STREAM)),
            theirs("Unix datagram", Sleeps, || unix::open::<S>(SocketType::DGRAM)),
            theirs("Unix seqpacket", Sleeps, || unix::open::<S>(SocketType::SEQPACKET)),
            theirs("pipe", Sleeps, pipe::blocking::<S>),
            theirs("POSIX mq", Sleeps, mq::blocking::<S>),
            many(ours("doorbell", Polls, || doorbell_many::processes::<S, Trusted, Adaptive>(true))),
            many(ours("doorbell, untrusted", Polls, || {
                doorbell_many::processes::<S, Untrusted, Adaptive>(true)
            })),
            #[cfg(feature = "iceoryx2")]
            many(theirs("iceoryx2", Polls, || iceoryx2::many::<S>(false))),
            many(ours("doorbell, futex", Sleeps, || doorbell_many::processes::<S, Trusted, Futex>(false))),
            many(ours("doorbell, adaptive", Sleeps, || {
                doorbell_many::processes::<S, Trusted, Adaptive>(false)
            })),
            many(ours("doorbell, untrusted, adaptive", Sleeps, || {
                doorbell_many::processes::<S, Untrusted, Adaptive>(false)
            })),
            #[cfg(feature = "iceoryx2")]
            many(theirs("iceoryx2 with event", Sleeps, || iceoryx2::many::<S>(true))),
            many(theirs("Unix datagram", Sleeps, unix::many_datagram::<S>)),
            many(theirs("POSIX mq", Sleeps, mq::many_blocking::<S>)),
        ],
    }
}

/// rtrb at its best, and every way in which one of ours is used in a stream, for messages of `S`
/// bytes: rtrb in place comes first, then its chunks.
pub fn streams<const S: usize>() -> Vec<Rival> {
    use Place::{Processes, Threads};
    use Waiting::{Polls, SpinsThenSleeps};
    let rival =
        |name, place, waiting, ours, open| Rival { name, place, shape: Shape::Pair, waiting, ours, open };
    let ours = |name, place, waiting, open| rival(name, place, waiting, true, open);
    vec![
        rival("rtrb, in place", Threads, Polls, false, rtrb::polled::<S>),
        rival("rtrb, in chunks", Threads, Polls, false, rtrb::chunks::<S>),
        ours("push, try_recv", Threads, Polls, doorbell::between_threads::<S, false, false>),
        ours("send, try_recv", Threads, Polls, doorbell::between_threads::<S, true, false>),
        ours("send, recv", Threads, SpinsThenSleeps, doorbell::between_threads::<S, true, true>),
        ours("batches", Threads, Polls, doorbell::threads_batched::<S>),
        ours("values, in batches", Threads, Polls, doorbell::threads_values::<S>),
        ours("push, try_recv", Processes, Polls, doorbell::polled::<S, Trusted>),
        ours("send, recv", Processes, SpinsThenSleeps, doorbell::waiting::<S, Trusted, Adaptive>),
        ours("batches", Processes, Polls, doorbell::processes_batched::<S>),
        ours("values, in batches", Processes, Polls, doorbell::processes_values::<S>),
        ours("untrusted: push, try_recv", Processes, Polls, doorbell::polled::<S, Untrusted>),
    ]
}

/// How many messages of `size` bytes may be under way in one
/// direction: 256, but no more than 4 MiB, and at least four.
pub const fn depth(size: usize) -> usize {
    let fitting = (4 << 20) / size;
    if fitting > 256 {
        256
    } else if fitting < 4 {
        4
    } else {
        fitting
    }
}
