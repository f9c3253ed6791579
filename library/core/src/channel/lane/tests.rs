// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever lies in a ring, both sides stay in it; and every message
//! arrives once, whole and in order, in one thread.

use super::*;
use proptest::prelude::*;
use std::vec::Vec;

/// A ring, if not said otherwise the smallest. Panics if it is touched outside.
struct Ring<W = [AtomicU64; 8]> {
    words: W,
    released: AtomicU64,
}

impl<W: AsRef<[AtomicU64]>> Ring<W> {
    fn of(words: W) -> Self {
        Self { words, released: AtomicU64::new(0) }
    }
}

impl<W: AsRef<[AtomicU64]>> Shared for Ring<W> {
    fn word(&self, place: u64) -> &AtomicU64 {
        assert_eq!(place % 8, 0);
        &self.words.as_ref()[place as usize / 8]
    }
    fn released(&self) -> &AtomicU64 {
        &self.released
    }
}

/// Nothing, the shortest and the longest message, skips of one unit
/// and of three, and what is no record anywhere.
const WORDS: [u64; 6] = [0, 1, 16 << 2 | 1, 1 << 2 | 2, 3 << 2 | 2, u64::MAX];

/// Every ring made of these words. What is no record is at most once in it: there every walk ends.
fn rings() -> impl Iterator<Item = Ring> {
    (0..WORDS.len().pow(8)).filter_map(|number| {
        let word = |place: usize| WORDS[number / WORDS.len().pow(place as u32) % WORDS.len()];
        let words: [u64; 8] = core::array::from_fn(word);
        (words.iter().filter(|word| **word == u64::MAX).count() < 2)
            .then(|| Ring::of(words.map(AtomicU64::new)))
    })
}

/// Where the receiver may have released: every place of the ring, and where the indices wrap.
fn heads() -> impl Iterator<Item = u64> {
    (0..64).step_by(8).map(|place| (0_u64.wrapping_sub(64)).wrapping_add(place))
}

#[test]
fn whatever_records_a_sender_left_its_successor_stays_in_the_ring() {
    for ring in rings() {
        for head in heads() {
            ring.released.store(head, Ordering::Relaxed);
            let Ok(mut sender) = Sender::attach(Capacity::SMALLEST, &ring) else { continue };
            assert_eq!(sender.tail % 8, 0);
            assert!(sender.tail.wrapping_sub(sender.head) < 64, "there is always a 0 behind the last record");
            let before = ring.words.each_ref().map(|word| word.load(Ordering::Relaxed));
            if let Some(room) = sender.room(16, &ring).unwrap() {
                assert!(room.payload() % 8 == 0 && room.payload() + room.most() <= 64);
            }
            // A skip may have been written.
            (0..8).for_each(|place| ring.words[place].store(before[place], Ordering::Relaxed));
        }
    }
}

#[test]
fn whatever_records_lie_there_a_receiver_is_given_messages_in_the_ring_alone() {
    for ring in rings() {
        for head in heads() {
            ring.released.store(head, Ordering::Relaxed);
            let mut receiver = Receiver::attach(Capacity::SMALLEST, &ring).unwrap();
            receiver.has_bytes(u64::MAX, &ring);
            for _ in 0..9 {
                let at_once = receiver.next_at_once(&ring);
                let Ok(Some(found)) = receiver.next(&ring) else { break };
                assert!(at_once.is_none_or(|at_once| at_once == found));
                assert!(found.payload() % 8 == 0 && found.length() <= 16);
                assert!(found.payload() + found.length() <= 64);
                receiver.consume(found);
            }
        }
    }
}

#[test]
fn whatever_records_lie_there_a_run_is_of_messages_in_the_ring_alone() {
    // Of all rings every seventh, for time.
    for ring in rings().step_by(7) {
        let before = ring.words.each_ref().map(|word| word.load(Ordering::Relaxed));
        let write = |words: [u64; 8]| {
            (0..8).for_each(|place| ring.words[place].store(words[place], Ordering::Relaxed));
        };
        for head in heads() {
            ring.released.store(head, Ordering::Relaxed);
            write(before);
            let mut receiver = Receiver::attach(Capacity::SMALLEST, &ring).unwrap();
            let mut run = receiver.run();
            for _ in 0..20 {
                match receiver.next_of_run(&mut run, &ring) {
                    Ok(Some(found)) => {
                        assert!(found.payload() % 8 == 0 && found.length() <= 16);
                        assert!(found.payload() + found.length() <= 64);
                    }
                    Ok(None) => break,
                    Err(_) => {
                        // From then on nothing that lies there counts, though it were a message.
                        write([message_word(0); 8]);
                        assert_eq!(receiver.next_of_run(&mut run, &ring), Ok(None));
                        assert!(!receiver.has_such(&ring));
                        break;
                    }
                }
            }
        }
    }
}

/// One in which eight of the shortest messages may be held back.
fn larger() -> Ring<[AtomicU64; 128]> {
    Ring::of([const { AtomicU64::new(0) }; 128])
}

proptest! {
    /// Whichever way they are taken, and whatever length the receiver expects after the last: in order, and never at once when
    /// the sender must be told first.
    #[test]
    fn messages_of_all_lengths_are_taken_in_order(lengths in prop::collection::vec(
        prop_oneof![Just(8_u64), Just(24), 0_u64..=376], 1..300), ways in prop::collection::vec(0_u8..3, 1..50)
    ) {
        let ring = larger();
        let capacity = Capacity::new(1024).unwrap();
        let mut sender = Sender::attach(capacity, &ring).unwrap();
        let mut receiver = Receiver::attach(capacity, &ring).unwrap();
        prop_assert_eq!(sender.longest(), 376);
        let (mut sent, mut received) = (lengths.iter(), lengths.iter());
        let mut next = sent.next();
        let mut ways = ways.iter().cycle();
        while received.len() > 0 {
            while let Some(length) = next {
                let at_once = sender.room_at_once(*length);
                let Some(room) = sender.room(*length, &ring).unwrap() else { break };
                prop_assert!(at_once.is_none_or(|at_once| at_once == room));
                sender.publish(&room, *length, &ring);
                next = sent.next();
            }
            let before = received.len();
            loop {
                let found = match ways.next().unwrap() {
                    2 => {
                        // It may leave some.
                        let mut run = receiver.run();
                        let mut found = None;
                        for _ in 0..=received.len() % 4 {
                            found = receiver.next_of_run(&mut run, &ring).unwrap();
                            let Some(found) = found else { break };
                            prop_assert_eq!(Some(&found.length()), received.next());
                            prop_assert!(found.payload() + found.length() <= 1024);
                        }
                        if found.is_none() {
                            break;
                        }
                        continue;
                    }
                    0 => match receiver.next_at_once(&ring) {
                        Some(found) => {
                            prop_assert!(!receiver.must_release());
                            Some(found)
                        }
                        None => receiver.next(&ring).unwrap(),
                    },
                    _ => receiver.next(&ring).unwrap(),
                };
                let Some(found) = found else { break };
                prop_assert_eq!(Some(&found.length()), received.next());
                prop_assert!(found.payload() + found.length() <= 1024);
                receiver.consume(found);
            }
            if receiver.must_release() || received.len() == before {
                receiver.release(&ring);
            }
        }
        prop_assert!(sent.next().is_none() && !receiver.has_next(&ring));
    }
}

/// What one does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Sends so many bytes, if there is room.
    Send(u64),
    /// Takes room for so many, and gives it back.
    Reserve(u64),
    /// Receives so many messages, if they are there.
    Receive(u8),
    /// Releases, as a receiver that has found nothing.
    Release,
    /// The end is left, and another takes it.
    Sender,
    Receiver,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = || prop_oneof![Just(8_u64), Just(376), 0_u64..=376];
    prop::collection::vec(
        prop_oneof![
            8 => length().prop_map(Step::Send),
            1 => length().prop_map(Step::Reserve),
            6 => (1_u8..6).prop_map(Step::Receive),
            6 => Just(Step::Release),
            1 => Just(Step::Sender),
            1 => Just(Step::Receiver),
        ],
        1..400,
    )
}

proptest! {
    /// Every word of a message holds its number: what is overwritten too early is seen. Whoever has received everything
    /// finds room for the longest message.
    #[test]
    fn a_sender_that_begins_again_overwrites_nothing_that_is_still_to_be_read(
        steps in steps(), window in (0_u64..64).prop_map(|units| units * 8)
    ) {
        let ring = larger();
        let capacity = Capacity::new(1024).unwrap();
        let new_sender = || {
            let mut sender = Sender::attach(capacity, &ring).unwrap();
            sender.begin_again_beyond(window);
            sender
        };
        let mut sender = new_sender();
        let mut receiver = Receiver::attach(capacity, &ring).unwrap();
        // Numbers of the messages sent, released and received, and their lengths.
        let (mut sent, mut released, mut received) = (Vec::new(), 0, 0);
        let payload = |at: u64, length: u64| (at / 8..(at + length) / 8).map(|word| &ring.words[word as usize]);
        for step in steps {
            match step {
                Step::Send(length) => {
                    let Some(room) = sender.room(length, &ring).unwrap() else { continue };
                    prop_assert!(room.payload() + length <= 1024);
                    let number = sent.len() as u64;
                    payload(room.payload(), length).for_each(|word| word.store(!number, Ordering::Relaxed));
                    sender.publish(&room, length, &ring);
                    sent.push(length);
                }
                Step::Reserve(length) => drop(sender.room(length, &ring).unwrap()),
                Step::Receive(most) => {
                    for _ in 0..most {
                        let Some(found) = receiver.next(&ring).unwrap() else {
                            prop_assert_eq!(received, sent.len());
                            break;
                        };
                        prop_assert_eq!(Some(&found.length()), sent.get(received));
                        let number = !(received as u64);
                        prop_assert!(payload(found.payload(), found.length())
                            .all(|word| word.load(Ordering::Relaxed) == number));
                        receiver.consume(found);
                        received += 1;
                    }
                }
                Step::Release => {
                    receiver.release(&ring);
                    released = received;
                    let (count, _) = receiver.waiting(&ring);
                    prop_assert_eq!(count, sent.len() - received);
                }
                Step::Sender => sender = new_sender(),
                Step::Receiver => {
                    receiver = Receiver::attach(capacity, &ring).unwrap();
                    received = released;
                }
            }
            if released == sent.len() {
                // Another sender finds it too, wherever this one went. Where this one left a skip without a message after what was
                // released, the receiver must look once more: whoever finds no room rings it.
                if sender.room(376, &ring).unwrap().is_none() {
                    prop_assert!(receiver.next(&ring).unwrap().is_none());
                    receiver.release(&ring);
                }
                prop_assert!(sender.room(376, &ring).unwrap().is_some());
            }
        }
    }
}

/// A ring in which the first message was received, released and
/// written over just before its word is looked at.
struct Moving {
    ring: Ring,
    moved: core::cell::Cell<bool>,
}

impl Shared for Moving {
    fn word(&self, place: u64) -> &AtomicU64 {
        if !self.moved.replace(true) {
            self.ring.words[0].store(u64::MAX, Ordering::Relaxed);
            self.ring.released.store(24, Ordering::Relaxed);
        }
        self.ring.word(place)
    }
    fn released(&self) -> &AtomicU64 {
        &self.ring.released
    }
}

#[test]
fn who_looks_at_a_ring_while_it_moves_looks_again() {
    let words = [16 << 2 | 1, 0, 0, 8 << 2 | 1, 0, 0, 0, 0].map(AtomicU64::new);
    let ring = Moving { ring: Ring::of(words), moved: false.into() };
    assert_eq!(occupancy(Capacity::SMALLEST, &ring), (1, 16));
}

/// Messages of `length` bytes that a ring of which `used` bytes were sent and received takes while
/// nobody receives, by a sender that begins again beyond `window`.
fn burst(used: u64, length: u64, window: u64) -> u64 {
    let ring = larger();
    let capacity = Capacity::new(1024).unwrap();
    let mut sender = Sender::attach(capacity, &ring).unwrap();
    sender.begin_again_beyond(u64::MAX);
    let mut receiver = Receiver::attach(capacity, &ring).unwrap();
    while receiver.head < used {
        let room = sender.room(0, &ring).unwrap().unwrap();
        sender.publish(&room, 0, &ring);
        let found = receiver.next(&ring).unwrap().unwrap();
        receiver.consume(found);
        receiver.release(&ring);
    }
    sender.begin_again_beyond(window);
    let mut count = 0;
    while let Some(room) = sender.room(length, &ring).unwrap() {
        sender.publish(&room, length, &ring);
        count += 1;
    }
    count
}

#[test]
fn a_ring_begun_again_takes_as_many_messages_as_another_but_one_or_two_of_the_shortest() {
    let mut fewer = 0;
    for used in (0..1024).step_by(8) {
        for length in (0..=376).step_by(8) {
            let (again, on) = (burst(used, length, 64), burst(used, length, u64::MAX));
            let size = record_size(length);
            let lost = on.saturating_sub(again) * size;
            assert!(lost <= size + 8, "{again} against {on} of {length} bytes behind {used}");
            fewer += u32::from(lost > 0);
        }
    }
    assert!(fewer > 0, "it begins again somewhere");
}

#[test]
fn nobody_attaches_where_no_record_can_begin() {
    let ring = rings().next().unwrap();
    for released in (1..8).chain([u64::MAX]) {
        ring.released.store(released, Ordering::Relaxed);
        let misaligned = PeerViolation::Misaligned { value: released, unit: 8 };
        assert_eq!(Sender::attach(Capacity::SMALLEST, &ring).unwrap_err(), misaligned);
        assert_eq!(Receiver::attach(Capacity::SMALLEST, &ring).unwrap_err(), misaligned);
    }
}

/// Each message is answered before the next: where in a ring of 512 KiB does the last of many end
/// that goes furthest? (A ring must be so large for that to depend on where both sides run.)
#[cfg(not(any(feature = "fault_injection", miri)))]
fn furthest(on_one_cpu: bool) -> u64 {
    let ring = Ring::of((0..1 << 16).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
    let capacity = Capacity::new(512 << 10).unwrap();
    assert!(super::depends_on_cpus(capacity));
    let mut sender = Sender::attach(capacity, &ring).unwrap();
    let mut receiver = Receiver::attach(capacity, &ring).unwrap();
    (0..1000).fold(0, |furthest, _| {
        sender.set_on_one_cpu(on_one_cpu);
        let room = sender.room(8192, &ring).unwrap().unwrap();
        sender.publish(&room, 8192, &ring);
        let found = receiver.next(&ring).unwrap().unwrap();
        receiver.consume(found);
        receiver.release(&ring);
        furthest.max(found.payload() + found.length())
    })
}

#[cfg(not(any(feature = "fault_injection", miri)))]
#[test]
fn on_one_processor_a_ring_begins_again_while_its_messages_are_still_in_the_nearest_cache() {
    assert!(furthest(false) > 500 << 10);
    assert!(furthest(true) < 140 << 10);
}
