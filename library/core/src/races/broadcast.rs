// SPDX-License-Identifier: MIT OR Apache-2.0
//! Races of a publisher that overwrites with a subscriber that copies.

use super::platform::{caught, explore_bounded, meanwhile, without};
use crate::channel::broadcast::{Complete, Log, Next, Publisher, Steps, Subscriber};
use crate::index::Capacity;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

/// Two messages of 8 bytes fit; the third overwrites the first.
const CAPACITY: Capacity = Capacity::new(64).unwrap();

struct Ring {
    words: [AtomicU64; 8],
    tail: AtomicU64,
    floor: AtomicU64,
}

impl Log for Ring {
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

/// An empty log, and its two sides.
fn log() -> (Arc<Ring>, Publisher, Subscriber) {
    let ring = Ring {
        words: std::array::from_fn(|_| AtomicU64::new(0)),
        tail: AtomicU64::new(0),
        floor: AtomicU64::new(0),
    };
    (Arc::new(ring), Publisher::new(CAPACITY), Subscriber::new(CAPACITY, 0, 0).unwrap())
}

/// The payload of message `number`.
fn payload(number: u64) -> u64 {
    (number + 1) * 1000
}

fn publish<S: Steps>(publisher: &mut Publisher, ring: &Ring) {
    let number = publisher.published();
    let floor = publisher.floor_for(8, ring).unwrap();
    publisher.publish_with::<S>(floor, 8, ring, |at| {
        ring.word(at).store(payload(number), Ordering::Relaxed);
    });
}

/// `before` messages lie there, two more come while the subscriber copies what it finds.
fn publish_twice_and_copy<S: Steps + 'static>(before: u64) {
    let (ring, mut publisher, mut subscriber) = log();
    for _ in 0..before {
        publish::<Complete>(&mut publisher, &ring);
    }
    let publishing = meanwhile(&ring, move |ring| {
        publish::<S>(&mut publisher, ring);
        publish::<S>(&mut publisher, ring);
    });
    let mut expected = 0;
    let mut copied = 0;
    let copy = |at, length| {
        assert_eq!(length, 8);
        copied = ring.word(at).load(Ordering::Relaxed);
    };
    if let Next::Message { lost } = subscriber.next_with::<S>(&*ring, copy).unwrap() {
        expected += lost;
        assert_eq!(copied, payload(expected), "an overwritten message was taken for a good one");
    }
    publishing.join().unwrap();
}

/// Two messages are found where they lie, and read while another is
/// published over one of them or both.
fn look_while_overwritten<S: Steps + 'static>(over: u64) {
    let (ring, mut publisher, mut subscriber) = log();
    publish::<Complete>(&mut publisher, &ring);
    publish::<Complete>(&mut publisher, &ring);
    let held = [(); 2].map(|()| subscriber.next_in_place(&*ring).unwrap().unwrap());
    let publishing = meanwhile(&ring, move |ring| (0..over).for_each(|_| publish::<S>(&mut publisher, ring)));
    for (number, here) in (0..).zip(held) {
        let read = ring.word(here.payload()).load(Ordering::Relaxed);
        if here.is_intact_with::<S>(&*ring) {
            assert_eq!(read, payload(number), "an overwritten message was taken for a good one");
        }
    }
    publishing.join().unwrap();
}

#[test]
fn publish_over_what_is_held() {
    explore_bounded(|| look_while_overwritten::<Complete>(1));
    explore_bounded(|| look_while_overwritten::<Complete>(2));
}

#[test]
fn publish_and_copy() {
    explore_bounded(|| publish_twice_and_copy::<Complete>(0));
    explore_bounded(|| publish_twice_and_copy::<Complete>(1));
    explore_bounded(|| publish_twice_and_copy::<Complete>(2));
}

without! {
    Steps:
    WriteBeforeFloor: FLOOR_BEFORE_WRITE;
    /// A subscriber jumped to the floor and found a tail after it: this model's own find.
    NoReleaseOfFloor: RELEASE_FLOOR;
    NoFenceAfterFloor: FENCE_AFTER_FLOOR;
    NoFenceBeforeCheck: FENCE_BEFORE_CHECK;
    NoReleaseOfTail: RELEASE_TAIL;
}

/// What the subscriber says to nonsense, or this test to a wrong copy: both end in a panic here.
const NONSENSE: &str = "panicked";

#[test]
fn overwriting_before_moving_the_floor_is_caught() {
    caught(NONSENSE, || publish_twice_and_copy::<WriteBeforeFloor>(2));
    caught(NONSENSE, || look_while_overwritten::<WriteBeforeFloor>(1));
}

#[test]
fn moving_the_floor_without_release_is_caught() {
    caught(NONSENSE, || publish_twice_and_copy::<NoReleaseOfFloor>(1));
}

#[test]
fn overwriting_without_a_fence_after_the_floor_is_caught() {
    caught(NONSENSE, || publish_twice_and_copy::<NoFenceAfterFloor>(2));
    caught(NONSENSE, || look_while_overwritten::<NoFenceAfterFloor>(1));
}

#[test]
fn checking_the_floor_without_a_fence_is_caught() {
    caught(NONSENSE, || publish_twice_and_copy::<NoFenceBeforeCheck>(2));
    caught(NONSENSE, || look_while_overwritten::<NoFenceBeforeCheck>(1));
}

#[test]
fn publishing_the_tail_without_release_is_caught() {
    caught(NONSENSE, || publish_twice_and_copy::<NoReleaseOfTail>(0));
}
