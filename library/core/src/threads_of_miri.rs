// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two sides of a lane, of a log and of the wake protocol in threads, for Miri
//! (`ci/test/24-miri.sh`): it gives a load any store that the memory model allows, where the
//! processor at hand allows fewer, and reports races of what is not atomic. Run by themselves the
//! tests are short and pass.

use crate::channel::arithmetic::passes;
use crate::channel::broadcast::{Log, Next, Publisher, Subscriber};
use crate::channel::lane::{Receiver, Sender, Shared};
use crate::index::Capacity;
use crate::sync::{AtomicU64, Ordering};
use crate::wake::{Sleep, Slept, Waiter, WaiterSlot, WakeWords, Woken, wait_until};
use std::cell::UnsafeCell;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::vec::Vec;

const CAPACITY: Capacity = Capacity::new(128).unwrap();
const MESSAGES: u64 = if cfg!(miri) { 12 } else { 1000 };

/// A bell with a futex made of a lock: the kernel compares the word and joins its queue under one.
#[derive(Default)]
struct Bell {
    words: WakeWords,
    wakes: Mutex<u32>,
    changed: Condvar,
}

impl Bell {
    fn wake(&self, woken: Woken) {
        if woken.futex() {
            *self.wakes.lock().unwrap() += 1;
            self.changed.notify_all();
        }
    }

    fn wait(&self, ready: impl FnMut() -> bool) {
        let mut waiters = [Waiter::new(&self.words, WaiterSlot::FUTEX)];
        wait_until(&mut waiters, &mut Sleeper(self), ready).unwrap();
    }
}

struct Sleeper<'a>(&'a Bell);

impl Sleep for Sleeper<'_> {
    type Error = ();
    fn consume(&mut self, _: usize) -> Result<(), ()> {
        Ok(())
    }
    fn barrier(&mut self, _: usize) -> Result<(), ()> {
        unreachable!("every notifier here has its fence")
    }
    fn sleep(&mut self, waiters: &[Waiter<'_>]) -> Result<Slept, ()> {
        let mut wakes = self.0.wakes.lock().unwrap();
        let before = *wakes;
        if self.0.words.epoch().load(Ordering::Relaxed) == waiters[0].ticket() {
            while *wakes == before {
                wakes = self.0.changed.wait(wakes).unwrap();
            }
        }
        Ok(Slept::Woken)
    }
}

struct Lane {
    words: Vec<AtomicU64>,
    /// Not atomic: a byte that is read before its message was
    /// committed, or written before it was released, is a race.
    payload: Vec<UnsafeCell<u64>>,
    released: AtomicU64,
    message_wanted: AtomicU64,
    room_wanted: AtomicU64,
    messages: Bell,
    room: Bell,
}

// SAFETY: the payload is what the protocol protects, and Miri checks that it does.
unsafe impl Sync for Lane {}

impl Shared for Lane {
    fn word(&self, place: u64) -> &AtomicU64 {
        &self.words[place as usize / 8]
    }
    fn released(&self) -> &AtomicU64 {
        &self.released
    }
}

impl Lane {
    fn new() -> Self {
        let words = CAPACITY.get() / 8;
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            payload: (0..=words).map(|_| UnsafeCell::new(0)).collect(),
            released: AtomicU64::new(0),
            message_wanted: AtomicU64::new(0),
            room_wanted: AtomicU64::new(0),
            messages: Bell::default(),
            room: Bell::default(),
        }
    }

    fn send(&self, sender: &mut Sender, value: u64) {
        let length = 8 + value % 3 * 8;
        let room = loop {
            if let Some(room) = sender.room(length, self).unwrap() {
                break room;
            }
            let wanted = sender.wanted(length);
            self.room_wanted.store(wanted, Ordering::Relaxed);
            self.room.wait(|| sender.may_go_on(wanted, self));
        };
        for word in 0..length / 8 {
            // SAFETY: Miri checks the access.
            unsafe { *self.payload[(room.payload() / 8 + word) as usize].get() = value };
        }
        let (words, wanted) = (&self.messages.words, &self.message_wanted);
        sender.publish(&room, length, self);
        let woken = words.announce_if(|| sender.reaches(wanted.load(Ordering::Relaxed)));
        sender.announced();
        self.messages.wake(woken);
    }

    fn receive(&self, receiver: &mut Receiver) -> u64 {
        loop {
            if let Some(found) = receiver.next(self).unwrap() {
                let words = (found.payload() / 8)..((found.payload() + found.length()) / 8);
                // SAFETY: Miri checks the access.
                let values: Vec<u64> =
                    words.map(|word| unsafe { *self.payload[word as usize].get() }).collect();
                assert!(values.iter().all(|value| *value == values[0]), "torn: {values:?}");
                receiver.consume(found);
                if receiver.must_release() {
                    let (before, now) = receiver.release(self);
                    let enough = || passes(self.room_wanted.load(Ordering::Relaxed), before, now);
                    self.room.wake(self.room.words.announce_if(enough));
                }
                return values[0];
            }
            receiver.release_unannounced(self);
            self.message_wanted.store(receiver.wanted(1), Ordering::Relaxed);
            self.messages.wait(|| receiver.has_next(self));
        }
    }
}

fn every_message_goes_through(lane: &Lane, sender: &mut Sender, receiver: &mut Receiver) {
    thread::scope(|scope| {
        scope.spawn(|| (1..=MESSAGES).for_each(|value| lane.send(sender, value)));
        for expected in 1..=MESSAGES {
            assert_eq!(lane.receive(receiver), expected);
        }
    });
}

#[test]
fn every_message_of_a_lane_arrives_once_and_whole_and_both_sides_sleep_and_wake() {
    let lane = Lane::new();
    let mut sender = Sender::attach(CAPACITY, &lane).unwrap();
    let mut receiver = Receiver::attach(CAPACITY, &lane).unwrap();
    every_message_goes_through(&lane, &mut sender, &mut receiver);
}

/// The first begins the ring again for certain, and what follows does
/// whenever the receiver has kept up.
#[test]
fn every_message_of_a_lane_that_begins_again_arrives_once_and_whole() {
    let lane = Lane::new();
    let mut sender = Sender::attach(CAPACITY, &lane).unwrap();
    let mut receiver = Receiver::attach(CAPACITY, &lane).unwrap();
    for value in [1, 2] {
        lane.send(&mut sender, value);
        assert_eq!(lane.receive(&mut receiver), value);
    }
    receiver.release(&lane);
    let place = sender.tail() % CAPACITY.get();
    sender.begin_again_beyond(16);
    every_message_goes_through(&lane, &mut sender, &mut receiver);
    let records: u64 = (1..=MESSAGES).map(|value| 16 + value % 3 * 8).sum();
    assert!(sender.tail() >= place + records + (CAPACITY.get() - place), "the rest of the ring was skipped");
}

struct Tape {
    words: Vec<AtomicU64>,
    tail: AtomicU64,
    floor: AtomicU64,
}

impl Log for Tape {
    fn word(&self, place: u64) -> &AtomicU64 {
        &self.words[place as usize / 8]
    }
    fn tail(&self) -> &AtomicU64 {
        &self.tail
    }
    fn floor(&self) -> &AtomicU64 {
        &self.floor
    }
}

/// The publisher waits for nobody: what a subscriber is given is a message that was published,
/// after a gap of known size.
#[test]
fn a_subscriber_that_is_overtaken_gets_no_torn_message_and_counts_what_it_missed() {
    let log = Tape {
        words: (0..CAPACITY.get() / 8).map(|_| AtomicU64::new(0)).collect(),
        tail: AtomicU64::new(0),
        floor: AtomicU64::new(0),
    };
    let mut publisher = Publisher::new(CAPACITY);
    let mut subscriber = Subscriber::new(CAPACITY, 0, 0).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for value in 0..MESSAGES {
                let floor = publisher.floor_for(16, &log).unwrap();
                publisher.publish(floor, 16, &log, |at| {
                    log.word(at).store(value, Ordering::Relaxed);
                    log.word(at + 8).store(!value, Ordering::Relaxed);
                });
            }
        });
        let mut expected = 0;
        while expected < MESSAGES {
            let mut copy = (0, 0);
            let next = subscriber.next(&log, |at, length| {
                if length == 16 {
                    copy = (log.word(at).load(Ordering::Relaxed), log.word(at + 8).load(Ordering::Relaxed));
                }
            });
            if let Next::Message { lost } = next.unwrap() {
                expected += lost;
                assert_eq!(copy, (expected, !expected));
                expected += 1;
            } else {
                thread::yield_now();
            }
        }
    });
}
