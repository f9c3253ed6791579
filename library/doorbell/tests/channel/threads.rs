// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels between threads.

use crate::other::{FOREVER, message, number};
use doorbell::Deadline;
use doorbell::channel::{AttachError, Lanes, Receiver, RecvError, SendError, Sender, pair, pair_waiting_by};
use doorbell::rendezvous::{Offer, Segment};
use doorbell::wait::{Adaptive, Eventfd, Futex, Wait, Yield};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::thread;
use std::time::Duration;

fn every_message_arrives<W: Wait + Default + 'static>(capacity: u64, count: u64) {
    let (mut sender, mut receiver) = pair_waiting_by::<W>(capacity).unwrap();
    let longest = sender.longest();
    let sending = thread::spawn(move || {
        for number in 0..count {
            sender.send_timeout(&message(number, longest), FOREVER).unwrap();
        }
    });
    for expected in 0..count {
        let message = receiver.recv_timeout(FOREVER).unwrap().expect("hung");
        assert_eq!(number(&message, longest), expected);
    }
    assert_eq!(receiver.recv_timeout(FOREVER).unwrap_err(), RecvError::Closed);
    sending.join().unwrap();
}

#[test]
fn messages_of_all_lengths_arrive_once_and_in_order_by_every_way_of_waiting() {
    for capacity in [64, 256, 4096] {
        every_message_arrives::<Adaptive>(capacity, 20_000);
        every_message_arrives::<Futex>(capacity, 5_000);
        every_message_arrives::<Eventfd>(capacity, 5_000);
        every_message_arrives::<Yield>(capacity, 5_000);
    }
}

#[test]
fn the_longest_message_fits_whatever_went_before() {
    for before in 0..40 {
        let (mut sender, mut receiver) = pair(256).unwrap();
        for _ in 0..before {
            sender.send(b"x").unwrap();
            receiver.recv().unwrap();
        }
        let longest = vec![7; sender.longest() as usize];
        sender.try_send(&longest).unwrap();
        assert_eq!(&receiver.recv().unwrap()[..], longest);
    }
}

/// Pushed and not rung, all of it: the receiver slept, and the sender tried again and again.
#[test]
fn a_sender_that_finds_the_channel_full_has_told_of_what_it_pushed() {
    for reserve in [false, true] {
        let (mut sender, mut receiver) = pair_waiting_by::<Futex>(256).unwrap();
        let receiving = thread::spawn(move || {
            (0..1000).for_each(|_| assert!(receiver.recv_timeout(FOREVER).unwrap().is_some(), "hung"));
        });
        for _ in 0..1000 {
            while sender.push(&[7; 16]) == Err(SendError::Full) {
                if reserve {
                    drop(sender.try_reserve(16));
                }
                thread::yield_now();
            }
        }
        sender.ring();
        receiving.join().unwrap();
    }
}

#[test]
fn a_message_that_is_too_long_is_refused_with_both_lengths() {
    let (mut sender, _receiver) = pair(64).unwrap();
    let refused = sender.send(&[0; 17]);
    assert_eq!(refused, Err(SendError::TooLong { length: 17, longest: 16 }));
}

#[test]
fn an_empty_message_is_a_message() {
    let (mut sender, mut receiver) = pair(64).unwrap();
    sender.send(b"").unwrap();
    assert_eq!(receiver.recv().unwrap().len(), 0);
    assert!(receiver.try_recv().unwrap().is_none());
}

#[test]
fn a_full_channel_fails_or_drops_with_a_count_or_waits() {
    let (mut sender, mut receiver) = pair(64).unwrap();
    while sender.try_send(&[1; 16]).is_ok() {}
    assert_eq!(sender.try_send(&[2; 16]), Err(SendError::Full));
    assert_eq!(sender.send_timeout(&[2; 16], Duration::from_millis(5)), Err(SendError::TimedOut));
    assert_eq!(sender.send_or_drop(&[3; 16]), Ok(false));
    assert_eq!(sender.send_or_drop(&[3; 16]), Ok(false));
    assert_eq!(receiver.dropped(), 2);
    let waiting = thread::spawn(move || sender.send(&[4; 16]).map(|()| sender));
    assert_eq!(receiver.recv().unwrap()[0], 1);
    assert_eq!(receiver.recv().unwrap().into_vec()[0], 1);
    let _sender = waiting.join().unwrap().unwrap();
    assert_eq!(receiver.recv().unwrap()[0], 4, "what was refused and dropped never comes");
}

#[test]
fn a_slot_is_seen_when_it_is_committed_and_never_when_it_is_dropped() {
    let (mut sender, mut receiver) = pair(4096).unwrap();
    sender.reserve(100).unwrap()[..7].copy_from_slice(b"dropped");
    let mut slot = sender.reserve(100).unwrap();
    assert_eq!(slot.write(95, b"beyond the end"), 5);
    for (at, part) in [(0, "com"), (3, "mitted in"), (12, " parts")] {
        assert_eq!(slot.write(at, part.as_bytes()), part.len());
    }
    assert!(receiver.try_recv().unwrap().is_none());
    slot.commit_first(18).unwrap();
    assert_eq!(receiver.recv().unwrap().to_vec(), b"committed in parts");
    assert!(receiver.try_recv().unwrap().is_none());
}

/// Sends so many in one batch over a ring of `capacity` bytes, to a receiver that may sleep.
fn all_of_a_batch_arrive(capacity: u64, count: u8) {
    let (mut sender, mut receiver) = pair_waiting_by::<Futex>(capacity).unwrap();
    let receiving = thread::spawn(move || {
        (0..count).map(|_| receiver.recv_timeout(FOREVER).unwrap().expect("hung")[0]).collect::<Vec<_>>()
    });
    let mut batch = sender.batch();
    for number in 0..count {
        batch.push_deadline(&[number], Some(Deadline::after(FOREVER))).unwrap();
    }
    drop(batch);
    assert_eq!(receiving.join().unwrap(), (0..count).collect::<Vec<_>>());
}

#[test]
fn a_batch_wakes_a_sleeper_when_it_is_dropped() {
    all_of_a_batch_arrive(4096, 50);
}

#[test]
fn a_full_batch_rings_before_it_waits_for_room() {
    all_of_a_batch_arrive(64, 200);
}

#[test]
fn a_receiver_that_waits_for_bytes_is_woken_when_they_are_there_and_at_its_deadline() {
    let (mut sender, mut receiver) = pair_waiting_by::<Futex>(4096).unwrap();
    sender.send(b"one").unwrap();
    assert!(!receiver.wait_for_bytes(32, Deadline::after(Duration::from_millis(5))).unwrap());
    let sending = thread::spawn(move || {
        for _ in 0..3 {
            sender.send(b"more").unwrap();
            thread::sleep(Duration::from_millis(1));
        }
        sender
    });
    assert!(receiver.wait_for_bytes(64, Deadline::after(FOREVER)).unwrap(), "hung");
    for length in [3, 4, 4, 4] {
        assert_eq!(receiver.try_recv().unwrap().expect("waited for").len(), length);
    }
    drop(sending.join().unwrap());
}

/// Memory of one lane.
fn for_threads(capacity: u64) -> Segment {
    Segment::for_threads(&Offer::of_lanes(Lanes::new(1, 1, capacity).unwrap())).unwrap()
}

#[test]
fn a_sender_that_leaves_is_told_after_its_last_message_and_its_successor_is_heard() {
    let segment = for_threads(4096);
    let mut first = Sender::<_, Adaptive>::at(&segment, 0).unwrap();
    let mut receiver = Receiver::<_, Adaptive>::at(&segment, 0).unwrap();
    let taken = Sender::<_, Adaptive>::at(&segment, 0).unwrap_err();
    assert_eq!(taken, AttachError::Taken { lane: 0 });
    first.send(b"last words").unwrap();
    drop(first);
    assert_eq!(receiver.recv().unwrap().to_vec(), b"last words");
    assert_eq!(receiver.recv().unwrap_err(), RecvError::Closed);
    assert_eq!(receiver.try_recv().unwrap_err(), RecvError::Closed);
    let mut second = Sender::<_, Adaptive>::at(&segment, 0).unwrap();
    assert!(receiver.try_recv().unwrap().is_none());
    second.send(b"I go on").unwrap();
    assert_eq!(receiver.recv().unwrap().to_vec(), b"I go on");
}

#[test]
fn a_receiver_that_leaves_is_told_and_its_successor_gets_what_it_left() {
    let segment = for_threads(64);
    let mut sender = Sender::<_, Futex>::at_waiting_by(&segment, 0).unwrap();
    let mut first = Receiver::<_, Futex>::at_waiting_by(&segment, 0).unwrap();
    sender.send(&[1; 16]).unwrap();
    sender.send(&[2; 16]).unwrap();
    assert_eq!(first.recv().unwrap()[0], 1);
    let blocked = thread::spawn(move || {
        let refused = sender.send(&[3; 16]).and_then(|()| sender.send(&[4; 16]));
        (refused, sender)
    });
    thread::sleep(Duration::from_millis(5));
    drop(first);
    let (refused, mut sender) = blocked.join().unwrap();
    assert_eq!(refused, Err(SendError::Closed));
    let mut second = Receiver::<_, Futex>::at_waiting_by(&segment, 0).unwrap();
    assert_eq!(second.recv().unwrap()[0], 2);
    while let Some(message) = second.try_recv().unwrap() {
        assert_eq!(message[0], 3);
    }
    sender.send(&[5; 16]).unwrap();
    assert_eq!(second.recv().unwrap()[0], 5);
}

#[test]
fn the_room_of_a_message_is_the_senders_again_when_it_is_released_or_the_receiver_is_used_the_next_time() {
    let (mut sender, mut receiver) = pair(64).unwrap();
    let fill = |sender: &mut Sender<_>| while sender.try_send(&[1; 8]).is_ok() {};
    fill(&mut sender);
    receiver.recv().unwrap().release();
    sender.try_send(&[2; 8]).unwrap();
    fill(&mut sender);
    let message = receiver.recv().unwrap();
    assert_eq!((sender.try_send(&[2; 8]), message[0]), (Err(SendError::Full), 1));
    assert_eq!(receiver.recv().unwrap()[0], 1);
    sender.try_send(&[3; 8]).unwrap();
}

fn is_readable(receiver: &mut Receiver<doorbell::peer::Trusted>) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&receiver.file().unwrap(), PollFlags::IN)], Some(&now)).unwrap() == 1
}

#[test]
fn an_event_loop_that_takes_one_message_for_each_readiness_takes_all() {
    let (mut sender, mut receiver) = pair(256).unwrap();
    let sending = thread::spawn(move || {
        for number in 0..5000_u64 {
            sender.send(&number.to_ne_bytes()).unwrap();
        }
        sender
    });
    let mut expected = 0_u64;
    receiver.listen().unwrap();
    while expected < 5000 {
        let timeout = Timespec { tv_sec: 60, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&receiver.file().unwrap(), PollFlags::IN)], Some(&timeout));
        assert_eq!(ready.unwrap(), 1, "hung");
        if let Some(message) = receiver.try_recv().unwrap() {
            assert_eq!(message.to_vec(), expected.to_ne_bytes());
            expected += 1;
        } else {
            receiver.listen().unwrap();
        }
    }
    drop(sending.join().unwrap());
}

#[test]
fn a_file_is_readable_exactly_while_there_is_something_to_receive() {
    let (mut sender, mut receiver) = pair(256).unwrap();
    assert!(!receiver.listen().unwrap());
    assert!(!is_readable(&mut receiver));
    sender.send(b"a").unwrap();
    sender.send(b"b").unwrap();
    assert!(is_readable(&mut receiver));
    receiver.recv().unwrap().release();
    assert!(is_readable(&mut receiver), "one is left");
    assert!(receiver.listen().unwrap());
    assert!(is_readable(&mut receiver));
    receiver.recv().unwrap().release();
    assert!(!receiver.listen().unwrap());
    assert!(!is_readable(&mut receiver));
    drop(sender);
    assert!(is_readable(&mut receiver), "a departure is something to receive");
    assert_eq!(receiver.try_recv().unwrap_err(), RecvError::Closed);
}

/// With a quarter of the ring queued and nearly an eighth held back, the longest record that still
/// fits has no room: the sender waited for the receiver, and the receiver for bytes.
#[test]
fn a_receiver_that_waits_for_bytes_gives_back_what_it_has_received() {
    let (mut sender, mut receiver) = pair(256).unwrap();
    // Released up to 88, then 24 more that are held back.
    for length in [80, 16] {
        sender.send(&vec![1; length]).unwrap();
        assert_eq!(receiver.recv().unwrap().to_vec().len(), length);
    }
    // 56 bytes of records, then one of 96 after them, with the rest of the ring skipped.
    sender.send(&[2; 48]).unwrap();
    assert_eq!(sender.try_send(&[3; 88]).unwrap_err(), SendError::Full);
    let over = Deadline::after(Duration::ZERO);
    assert!(!receiver.wait_for_bytes(64, over).unwrap());
    sender.try_send(&[3; 88]).expect("the receiver that waits holds nothing back");
    assert!(receiver.wait_for_bytes(64, over).unwrap());
}

/// A ring for each message would pass every other test, for it wakes
/// too often and never too seldom.
#[test]
fn a_receiver_that_waits_for_bytes_is_woken_once_when_they_are_there() {
    let segment = for_threads(4096);
    let mut sender: Sender<_, Futex> = Sender::at_waiting_by(&segment, 0).unwrap();
    let mut receiver: Receiver<_, Futex> = Receiver::at_waiting_by(&segment, 0).unwrap();
    let (say, said) = std::sync::mpsc::channel();
    let waiting = thread::spawn(move || {
        say.send(rustix::thread::gettid()).unwrap();
        assert!(receiver.wait_for_bytes(1024, Deadline::after(FOREVER)).unwrap(), "hung");
        receiver.counts()
    });
    let receiver = said.recv().unwrap();
    // Who has armed may be about to look again, and find all there is without a sleep.
    let asleep = || {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{receiver}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('S')
    };
    // 32 bytes each, with the word before it.
    for _ in 0..32 {
        // One that was woken too early goes to sleep again, and is woken again.
        while !(segment.state(0).unwrap().record().wake.has_sleepers() && asleep()) {
            thread::yield_now();
        }
        sender.send(&[0; 24]).unwrap();
    }
    let counts = waiting.join().unwrap();
    assert_eq!((counts.slept, counts.woken), (1, 1));
}

/// Of a ring of four megabytes no more is used than one, and two messages, by who receives before
/// the next is sent. A burst has all of it, wherever the last one ended.
#[test]
fn a_sender_whose_receiver_keeps_up_begins_a_large_ring_again_and_a_burst_fills_it_all_the_same() {
    const LENGTH: usize = 300_000;
    let (mut sender, mut receiver) = pair(4 << 20).unwrap();
    let mut number = 0_u8;
    for round in 0..8 {
        let mut places = std::collections::BTreeSet::new();
        for _ in 0..20 + round {
            number = number.wrapping_add(1);
            sender.try_send(&[number; LENGTH]).unwrap();
            let message = receiver.try_recv().unwrap().expect("sent");
            assert!(message.len() == LENGTH && message.iter().all(|byte| *byte == number));
            places.insert(message.as_ptr() as usize);
            assert!(receiver.try_recv().unwrap().is_none());
        }
        // Those of the last burst are among them, and the ring has thirteen.
        assert!((2..=6 + 3).contains(&places.len()), "{} places", places.len());
        let mut burst = 0_u8;
        while sender.try_send(&[burst; LENGTH]).is_ok() {
            burst += 1;
        }
        assert!(burst >= 12, "{burst} messages of {LENGTH} bytes in four megabytes");
        for expected in 0..burst {
            let message = receiver.try_recv().unwrap().expect("sent");
            assert!(message.len() == LENGTH && message.iter().all(|byte| *byte == expected));
        }
        assert!(receiver.try_recv().unwrap().is_none());
    }
}
