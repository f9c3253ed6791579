// SPDX-License-Identifier: MIT OR Apache-2.0
//! Races of the two sides of a lane: commit with wait, full with
//! release, batches with the wanted index.
//!
//! The payload lies in cells whose accesses loom checks: reading a byte before its message is
//! committed, or writing one before it is released, is reported as a causality violation.

use super::platform::{Bell, Futex, explore_bounded};
use crate::channel::arithmetic::passes;
use crate::channel::lane::{Complete, Receiver, Room, Sender, Shared, Steps};
use crate::index::Capacity;
use crate::wake::{self, Waiter, WaiterSlot, broken, wait_until};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use loom::thread;
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
            // An empty message at the end of the ring has its payload behind it.
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
        self.messages.wake(broken::announce_if::<N>(&self.messages.words, enough));
        sender.announced();
    }

    pub(super) fn send<S: Steps>(&self, sender: &mut Sender, value: u64, length: u64) {
        while !self.push::<S>(sender, value, length) {
            let wanted = sender.wanted(length);
            self.room_wanted.store(wanted, Ordering::Relaxed);
            let mut waiters = [Waiter::new(&self.room.words, WaiterSlot::FUTEX)];
            let room = &self.room;
            wait_until(&mut waiters, &mut Futex(&[room]), || sender.may_go_on(wanted, self)).unwrap();
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
        wait_until(&mut waiters, &mut Futex(&[&self.messages]), ready).unwrap();
    }

    pub(super) fn receive<S: Steps>(&self, receiver: &mut Receiver) -> u64 {
        loop {
            if let Some(value) = self.try_receive::<S>(receiver) {
                return value;
            }
            self.wait(receiver, 1);
        }
    }

    /// Sends and receives `count` messages of 8 bytes, so that the ring is full of their words.
    pub(super) fn used(&self, ends: &mut Ends, count: u64) {
        for value in 0..count {
            self.send::<Complete>(&mut ends.sender, value, 8);
            assert_eq!(self.receive::<Complete>(&mut ends.receiver), value);
        }
    }
}

/// Runs `send` in a thread of its own.
pub(super) fn sending(
    lane: &Arc<Lane>,
    mut sender: Sender,
    send: impl FnOnce(&Lane, &mut Sender) + 'static,
) -> thread::JoinHandle<()> {
    let lane = Arc::clone(lane);
    thread::spawn(move || send(&lane, &mut sender))
}

#[test]
fn send_twice_and_receive_twice() {
    explore_bounded(|| {
        let (lane, mut ends) = Lane::new();
        let sender = sending(&lane, ends.sender, |lane, sender| {
            lane.send::<Complete>(sender, 1, 8);
            lane.send::<Complete>(sender, 2, 8);
        });
        assert_eq!(lane.receive::<Complete>(&mut ends.receiver), 1);
        assert_eq!(lane.receive::<Complete>(&mut ends.receiver), 2);
        sender.join().unwrap();
    });
}

/// Words of the lap before lie where the next records begin.
#[test]
fn send_twice_and_receive_twice_in_a_used_ring() {
    explore_bounded(|| {
        let (lane, mut ends) = Lane::new();
        lane.used(&mut ends, 4);
        let sender = sending(&lane, ends.sender, |lane, sender| {
            lane.send::<Complete>(sender, 11, 8);
            lane.send::<Complete>(sender, 12, 8);
        });
        assert_eq!(lane.receive::<Complete>(&mut ends.receiver), 11);
        assert_eq!(lane.receive::<Complete>(&mut ends.receiver), 12);
        sender.join().unwrap();
    });
}

/// The third message finds no room, waits for it, and skips the end of the ring.
#[test]
fn send_to_a_full_ring_and_receive() {
    explore_bounded(|| {
        let (lane, mut ends) = Lane::new();
        assert!(lane.push::<Complete>(&mut ends.sender, 1, 16));
        assert!(lane.push::<Complete>(&mut ends.sender, 2, 16));
        let sender = sending(&lane, ends.sender, |lane, sender| lane.send::<Complete>(sender, 3, 16));
        for value in 1..=3 {
            assert_eq!(lane.receive::<Complete>(&mut ends.receiver), value);
        }
        sender.join().unwrap();
    });
}

/// The receiver holds back an empty message, finds nothing more and says nothing of it. The last
/// message takes as much room as any can, and the sender waits for it.
#[test]
fn send_to_a_full_ring_and_receive_with_a_release_that_is_not_announced() {
    explore_bounded(|| {
        let (lane, mut ends) = Lane::of(ROOMY);
        assert!(lane.push::<Complete>(&mut ends.sender, 1, 40));
        assert!(lane.push::<Complete>(&mut ends.sender, 2, 24));
        assert!(lane.push::<Complete>(&mut ends.sender, 0, 0));
        let sender = sending(&lane, ends.sender, |lane, sender| lane.send::<Complete>(sender, 3, 40));
        for value in [1, 2, 0, 3] {
            assert_eq!(lane.receive::<Complete>(&mut ends.receiver), value);
        }
        sender.join().unwrap();
    });
}

/// What a sender leaves that gives its room back: the receiver
/// follows the skip and finds nothing behind it.
#[test]
fn skip_without_a_message_and_send_and_receive() {
    explore_bounded(|| {
        let (lane, mut ends) = Lane::new();
        lane.used(&mut ends, 3);
        let sender = sending(&lane, ends.sender, |lane, sender| {
            assert!(sender.room(16, lane).unwrap().is_some());
            lane.send::<Complete>(sender, 7, 8);
        });
        assert_eq!(lane.receive::<Complete>(&mut ends.receiver), 7);
        sender.join().unwrap();
    });
}

#[test]
fn send_twice_and_wait_for_both() {
    explore_bounded(|| {
        let (lane, mut ends) = Lane::new();
        let sender = sending(&lane, ends.sender, |lane, sender| {
            lane.send::<Complete>(sender, 1, 8);
            lane.send::<Complete>(sender, 2, 8);
        });
        lane.wait(&ends.receiver, 32);
        assert_eq!(lane.try_receive::<Complete>(&mut ends.receiver), Some(1));
        assert_eq!(lane.try_receive::<Complete>(&mut ends.receiver), Some(2));
        sender.join().unwrap();
    });
}

/// The receiver waits for one message, then for two: the bit of the
/// first wait may still be set in the second.
#[test]
fn send_three_times_and_wait_for_one_and_for_two() {
    explore_bounded(|| {
        let (lane, mut ends) = Lane::new();
        let sender = sending(&lane, ends.sender, |lane, sender| {
            for value in 1..=3 {
                lane.send::<Complete>(sender, value, 8);
            }
        });
        lane.wait(&ends.receiver, 1);
        assert_eq!(lane.try_receive::<Complete>(&mut ends.receiver), Some(1));
        lane.wait(&ends.receiver, 32);
        assert_eq!(lane.try_receive::<Complete>(&mut ends.receiver), Some(2));
        assert_eq!(lane.try_receive::<Complete>(&mut ends.receiver), Some(3));
        sender.join().unwrap();
    });
}

#[test]
fn push_twice_and_ring_once_and_receive_twice() {
    explore_bounded(|| {
        let (lane, mut ends) = Lane::new();
        let sender = sending(&lane, ends.sender, |lane, sender| {
            assert!(lane.push::<Complete>(sender, 1, 8));
            assert!(lane.push::<Complete>(sender, 2, 8));
            lane.ring::<wake::Complete>(sender);
        });
        assert_eq!(lane.receive::<Complete>(&mut ends.receiver), 1);
        assert_eq!(lane.receive::<Complete>(&mut ends.receiver), 2);
        sender.join().unwrap();
    });
}

/// The receiver sees the message before it sees that the sender left.
#[test]
fn send_and_leave_and_receive() {
    explore_bounded(|| {
        let (lane, mut ends) = Lane::new();
        let sender = sending(&lane, ends.sender, |lane, sender| {
            assert!(lane.push::<Complete>(sender, 7, 8));
            lane.left.store(1, Ordering::Release);
            lane.messages.wake(lane.messages.words.announce());
        });
        lane.wait(&ends.receiver, 1);
        let left = lane.left.load(Ordering::Acquire) != 0;
        let received = lane.try_receive::<Complete>(&mut ends.receiver);
        assert!(received.is_some() || !left, "told of the departure and not of the message before it");
        sender.join().unwrap();
    });
}

/// A second sender begins while the receiver receives what the first left.
#[test]
fn attach_to_a_used_lane_and_receive() {
    explore_bounded(|| {
        let (lane, mut ends) = Lane::new();
        assert!(lane.push::<Complete>(&mut ends.sender, 1, 8));
        drop(ends.sender);
        let shared = Arc::clone(&lane);
        let successor = thread::spawn(move || {
            let mut sender = Sender::attach(CAPACITY, &*shared).unwrap();
            shared.send::<Complete>(&mut sender, 2, 8);
        });
        assert_eq!(lane.receive::<Complete>(&mut ends.receiver), 1);
        assert_eq!(lane.receive::<Complete>(&mut ends.receiver), 2);
        successor.join().unwrap();
    });
}

/// A ring of whose four places two were used, and released; beyond
/// one of them the sender begins again.
pub(super) fn half_used() -> (Arc<Lane>, Ends) {
    let (lane, mut ends) = Lane::new();
    lane.used(&mut ends, 2);
    ends.sender.begin_again_beyond(16);
    (lane, ends)
}

/// The sender sleeps until the receiver has followed.
#[test]
fn begin_again_and_fill_the_ring_and_receive() {
    explore_bounded(|| {
        let (lane, mut ends) = half_used();
        assert!(lane.push::<Complete>(&mut ends.sender, 11, 8));
        assert!(lane.push::<Complete>(&mut ends.sender, 12, 8));
        let sender = sending(&lane, ends.sender, |lane, sender| lane.send::<Complete>(sender, 13, 8));
        for value in 11..=13 {
            assert_eq!(lane.receive::<Complete>(&mut ends.receiver), value);
        }
        sender.join().unwrap();
    });
}

/// A second sender goes on behind what the first left around its hurdle.
#[test]
fn attach_to_a_lane_begun_again_and_receive() {
    explore_bounded(|| {
        let (lane, mut ends) = half_used();
        assert!(lane.push::<Complete>(&mut ends.sender, 11, 8));
        assert!(lane.push::<Complete>(&mut ends.sender, 12, 8));
        drop(ends.sender);
        let shared = Arc::clone(&lane);
        let successor = thread::spawn(move || {
            let mut sender = Sender::attach(CAPACITY, &*shared).unwrap();
            shared.send::<Complete>(&mut sender, 13, 8);
        });
        for value in 11..=13 {
            assert_eq!(lane.receive::<Complete>(&mut ends.receiver), value);
        }
        successor.join().unwrap();
    });
}
