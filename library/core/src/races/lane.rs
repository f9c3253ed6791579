// SPDX-License-Identifier: MIT OR Apache-2.0
//! Races of the two sides of a lane: commit with wait, full with
//! release, batches with the wanted index.
//!
//! The payload lies in cells whose accesses loom checks: reading a byte before its message is
//! committed, or writing one before it is released, is reported as a causality violation.

use super::platform::{Bell, Futex, explore_bounded, meanwhile};
use crate::channel::arithmetic::passes;
use crate::channel::lane::{Complete, Receiver, Room, Sender, Shared, Steps};
use crate::index::Capacity;
use crate::wake::{self, Waiter, WaiterSlot, wait_until};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::ops::RangeInclusive;
use std::vec::Vec;

/// The smallest ring: three messages of 8 bytes, or two of 16 and then a skip.
const CAPACITY: Capacity = Capacity::new(64).unwrap();
/// The smallest in which an empty message may be held back: two of 40
/// bytes and one of none, or one and then a skip.
const ROOMY: Capacity = Capacity::new(128).unwrap();

pub(super) struct Lane {
    words: Vec<AtomicU64>,
    cells: Vec<UnsafeCell<u64>>,
    released: AtomicU64,
    pub(super) message_wanted: AtomicU64,
    room_wanted: AtomicU64,
    left: AtomicU32,
    pub(super) messages: Bell,
    room: Bell,
}

// SAFETY: the cells are what the protocol must protect, and loom checks that it does.
unsafe impl Sync for Lane {}

impl Shared for Lane {
    fn word(&self, place: u64) -> &AtomicU64 {
        &self.words[place as usize / 8]
    }
    fn released(&self) -> &AtomicU64 {
        &self.released
    }
}

/// One side's private part beside the index.
pub(super) struct Ends {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
}

impl Lane {
    pub(super) fn new() -> (Arc<Self>, Ends) {
        Self::of(CAPACITY)
    }

    fn of(capacity: Capacity) -> (Arc<Self>, Ends) {
        let words = capacity.get() / 8;
        let lane = Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            // An empty message at the end of the ring has its payload after it.
            cells: (0..=words).map(|_| UnsafeCell::new(0)).collect(),
            released: AtomicU64::new(0),
            message_wanted: AtomicU64::new(0),
            room_wanted: AtomicU64::new(0),
            left: AtomicU32::new(0),
            messages: Bell::new(),
            room: Bell::new(),
        };
        let sender = Sender::attach(capacity, &lane).unwrap();
        let receiver = Receiver::attach(capacity, &lane).unwrap();
        (Arc::new(lane), Ends { sender, receiver })
    }

    /// Publishes `value` in a message of `length` bytes, without
    /// telling anybody. False if there is no room.
    pub(super) fn push<S: Steps>(&self, sender: &mut Sender, value: u64, length: u64) -> bool {
        let Some(room) = sender.room_with::<S>(length, self).unwrap() else { return false };
        self.write(&room, value);
        sender.publish_with::<S>(&room, length, self);
        true
    }

    fn write(&self, room: &Room, value: u64) {
        if room.most() > 0 {
            // SAFETY: loom checks the access.
            self.cells[room.payload() as usize / 8].with_mut(|cell| unsafe { *cell = value });
        }
    }

    pub(super) fn ring<N: wake::Steps>(&self, sender: &mut Sender) {
        let enough = || sender.reaches(self.message_wanted.load(Ordering::Relaxed));
        self.messages.wake(self.messages.words.announce_if_with::<N>(enough));
        sender.announced();
    }

    pub(super) fn send<S: Steps>(&self, sender: &mut Sender, value: u64, length: u64) {
        while !self.push::<S>(sender, value, length) {
            let wanted = sender.wanted(length);
            self.room_wanted.store(wanted, Ordering::Relaxed);
            let mut waiters = [Waiter::new(&self.room.words, WaiterSlot::FUTEX)];
            let room = &self.room;
            wait_until(&mut waiters, &mut Futex(room), || sender.may_go_on(wanted, self)).unwrap();
        }
        self.ring::<wake::Complete>(sender);
    }

    fn release<S: Steps>(&self, receiver: &mut Receiver) {
        let (before, now) = receiver.release_with::<S>(self);
        let enough = || passes(self.room_wanted.load(Ordering::Relaxed), before, now);
        self.room.wake(self.room.words.announce_if(enough));
    }

    fn take_with<S: Steps>(&self, receiver: &mut Receiver) -> Option<u64> {
        let found = receiver.next_with::<S>(self).unwrap()?;
        // SAFETY: loom checks the access.
        let read = || self.cells[found.payload() as usize / 8].with(|cell| unsafe { *cell });
        let value = if found.length() > 0 { read() } else { 0 };
        receiver.consume(found);
        Some(value)
    }

    /// Receives without releasing.
    pub(super) fn take(&self, receiver: &mut Receiver) -> Option<u64> {
        self.take_with::<Complete>(receiver)
    }

    pub(super) fn try_receive<S: Steps>(&self, receiver: &mut Receiver) -> Option<u64> {
        let value = self.take_with::<S>(receiver);
        if receiver.must_release() {
            self.release::<S>(receiver);
        } else if value.is_none() {
            receiver.release_unannounced_with::<S>(self);
        }
        value
    }

    pub(super) fn wait(&self, receiver: &Receiver, bytes: u64) {
        self.message_wanted.store(receiver.wanted(bytes), Ordering::Relaxed);
        let mut waiters = [Waiter::new(&self.messages.words, WaiterSlot::FUTEX)];
        let ready = || receiver.has_bytes(bytes, self) || self.left.load(Ordering::Acquire) != 0;
        wait_until(&mut waiters, &mut Futex(&self.messages), ready).unwrap();
    }

    pub(super) fn receive<S: Steps>(&self, receiver: &mut Receiver) -> u64 {
        loop {
            if let Some(value) = self.try_receive::<S>(receiver) {
                return value;
            }
            self.wait(receiver, 1);
        }
    }

    /// Sends each of `values` in 8 bytes.
    pub(super) fn send_all<S: Steps>(&self, sender: &mut Sender, values: RangeInclusive<u64>) {
        values.for_each(|value| self.send::<S>(sender, value, 8));
    }

    /// Receives `values`, waiting for each.
    pub(super) fn receive_all<S: Steps>(
        &self,
        receiver: &mut Receiver,
        values: impl IntoIterator<Item = u64>,
    ) {
        values.into_iter().for_each(|value| assert_eq!(self.receive::<S>(receiver), value));
    }

    /// Receives `values`, which are there.
    pub(super) fn find_all(&self, receiver: &mut Receiver, values: RangeInclusive<u64>) {
        values.for_each(|value| assert_eq!(self.try_receive::<Complete>(receiver), Some(value)));
    }

    /// Sends and receives `count` messages of 8 bytes, so that the ring is full of their words.
    pub(super) fn used(&self, ends: &mut Ends, count: u64) {
        for value in 0..count {
            self.send::<Complete>(&mut ends.sender, value, 8);
            assert_eq!(self.receive::<Complete>(&mut ends.receiver), value);
        }
    }
}

/// A lane whose ring of 64 bytes is full: two messages of 16.
pub(super) fn full() -> (Arc<Lane>, Ends) {
    let (lane, mut ends) = Lane::new();
    (1..=2).for_each(|value| assert!(lane.push::<Complete>(&mut ends.sender, value, 16)));
    (lane, ends)
}

/// A lane that `count` messages have gone through.
pub(super) fn used(count: u64) -> (Arc<Lane>, Ends) {
    let (lane, mut ends) = Lane::new();
    lane.used(&mut ends, count);
    (lane, ends)
}

/// Does `send` in a thread of its own, and `receive` here.
pub(super) fn converse(
    (lane, ends): (Arc<Lane>, Ends),
    send: impl FnOnce(&Lane, &mut Sender) + 'static,
    receive: impl FnOnce(&Lane, &mut Receiver),
) {
    let Ends { mut sender, mut receiver } = ends;
    let sending = meanwhile(&lane, move |lane| send(lane, &mut sender));
    receive(&lane, &mut receiver);
    sending.join().unwrap();
}

/// What was sent by one sender, who is gone, is received while a second sends `value`.
fn succeed(lane: (Arc<Lane>, Ends), value: u64, receive: impl FnOnce(&Lane, &mut Receiver)) {
    let begin_and_send = move |lane: &Lane, _: &mut Sender| {
        let mut successor = Sender::attach(CAPACITY, lane).unwrap();
        lane.send::<Complete>(&mut successor, value, 8);
    };
    converse(lane, begin_and_send, receive);
}

#[test]
fn send_twice_and_receive_twice() {
    explore_bounded(|| {
        converse(
            Lane::new(),
            |lane, sender| lane.send_all::<Complete>(sender, 1..=2),
            |lane, receiver| lane.receive_all::<Complete>(receiver, 1..=2),
        );
    });
}

/// Words of the lap before lie where the next records begin.
#[test]
fn send_twice_and_receive_twice_in_a_used_ring() {
    explore_bounded(|| {
        converse(
            used(4),
            |lane, sender| lane.send_all::<Complete>(sender, 11..=12),
            |lane, receiver| lane.receive_all::<Complete>(receiver, 11..=12),
        );
    });
}

/// The third message finds no room, waits for it, and skips the end of the ring.
#[test]
fn send_to_a_full_ring_and_receive() {
    explore_bounded(|| {
        converse(
            full(),
            |lane, sender| lane.send::<Complete>(sender, 3, 16),
            |lane, receiver| lane.receive_all::<Complete>(receiver, 1..=3),
        );
    });
}

/// The receiver holds back an empty message, finds nothing more and says nothing of it. The last
/// message takes as much room as any can, and the sender waits for it.
#[test]
fn send_to_a_full_ring_and_receive_with_a_release_that_is_not_announced() {
    explore_bounded(|| {
        let (lane, mut ends) = Lane::of(ROOMY);
        for (value, length) in [(1, 40), (2, 24), (0, 0)] {
            assert!(lane.push::<Complete>(&mut ends.sender, value, length));
        }
        converse(
            (lane, ends),
            |lane, sender| lane.send::<Complete>(sender, 3, 40),
            |lane, receiver| lane.receive_all::<Complete>(receiver, [1, 2, 0, 3]),
        );
    });
}

/// What a sender leaves that gives its room back: the receiver
/// follows the skip and finds nothing after it.
#[test]
fn skip_without_a_message_and_send_and_receive() {
    explore_bounded(|| {
        let skip_and_send = |lane: &Lane, sender: &mut Sender| {
            assert!(sender.room(16, lane).unwrap().is_some());
            lane.send::<Complete>(sender, 7, 8);
        };
        converse(used(3), skip_and_send, |lane, receiver| lane.receive_all::<Complete>(receiver, 7..=7));
    });
}

#[test]
fn send_twice_and_wait_for_both() {
    explore_bounded(|| {
        let wait_and_find = |lane: &Lane, receiver: &mut Receiver| {
            lane.wait(receiver, 32);
            lane.find_all(receiver, 1..=2);
        };
        converse(Lane::new(), |lane, sender| lane.send_all::<Complete>(sender, 1..=2), wait_and_find);
    });
}

/// The receiver waits for one message, then for two: the bit of the
/// first wait may still be set in the second.
#[test]
fn send_three_times_and_wait_for_one_and_for_two() {
    explore_bounded(|| {
        let wait_and_find = |lane: &Lane, receiver: &mut Receiver| {
            lane.wait(receiver, 1);
            lane.find_all(receiver, 1..=1);
            lane.wait(receiver, 32);
            lane.find_all(receiver, 2..=3);
        };
        converse(Lane::new(), |lane, sender| lane.send_all::<Complete>(sender, 1..=3), wait_and_find);
    });
}

#[test]
fn push_twice_and_ring_once_and_receive_twice() {
    explore_bounded(|| {
        let push_and_ring = |lane: &Lane, sender: &mut Sender| {
            (1..=2).for_each(|value| assert!(lane.push::<Complete>(sender, value, 8)));
            lane.ring::<wake::Complete>(sender);
        };
        let receive = |lane: &Lane, receiver: &mut Receiver| lane.receive_all::<Complete>(receiver, 1..=2);
        converse(Lane::new(), push_and_ring, receive);
    });
}

/// The receiver sees the message before it sees that the sender left.
#[test]
fn send_and_leave_and_receive() {
    explore_bounded(|| {
        let send_and_leave = |lane: &Lane, sender: &mut Sender| {
            assert!(lane.push::<Complete>(sender, 7, 8));
            lane.left.store(1, Ordering::Release);
            lane.messages.wake(lane.messages.words.announce());
        };
        converse(Lane::new(), send_and_leave, |lane, receiver| {
            lane.wait(receiver, 1);
            let left = lane.left.load(Ordering::Acquire) != 0;
            let received = lane.try_receive::<Complete>(receiver);
            assert!(received.is_some() || !left, "told of the departure and not of the message before it");
        });
    });
}

/// A second sender begins while the receiver receives what the first left.
#[test]
fn attach_to_a_used_lane_and_receive() {
    explore_bounded(|| {
        let (lane, mut ends) = Lane::new();
        assert!(lane.push::<Complete>(&mut ends.sender, 1, 8));
        succeed((lane, ends), 2, |lane, receiver| lane.receive_all::<Complete>(receiver, 1..=2));
    });
}

/// A ring of whose four places two were used, and released; beyond
/// one of them the sender begins again.
pub(super) fn half_used() -> (Arc<Lane>, Ends) {
    let (lane, mut ends) = used(2);
    ends.sender.begin_again_beyond(16);
    (lane, ends)
}

/// As `half_used`, with two messages in it.
fn begun_again() -> (Arc<Lane>, Ends) {
    let (lane, mut ends) = half_used();
    (11..=12).for_each(|value| assert!(lane.push::<Complete>(&mut ends.sender, value, 8)));
    (lane, ends)
}

/// The sender sleeps until the receiver has followed.
#[test]
fn begin_again_and_fill_the_ring_and_receive() {
    explore_bounded(|| {
        converse(
            begun_again(),
            |lane, sender| lane.send::<Complete>(sender, 13, 8),
            |lane, receiver| lane.receive_all::<Complete>(receiver, 11..=13),
        );
    });
}

/// A second sender goes on after what the first left around its hurdle.
#[test]
fn attach_to_a_lane_begun_again_and_receive() {
    explore_bounded(|| {
        succeed(begun_again(), 13, |lane, receiver| lane.receive_all::<Complete>(receiver, 11..=13));
    });
}
