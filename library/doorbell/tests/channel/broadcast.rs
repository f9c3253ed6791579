// SPDX-License-Identifier: MIT OR Apache-2.0
//! One sender, many receivers.

use crate::hostile::{CONTROL, Raw};
use crate::meet::meet;
use crate::other::{FOREVER, message, number, segment, start};
use doorbell::channel::broadcast::{Ended, Publisher, Subscriber, WhenSlow};
use doorbell::channel::{RecvError, SendError};
use doorbell::peer::Untrusted;
use doorbell::rendezvous::{Connection, MOST_MEMORY};
use doorbell::wait::Futex;
use doorbell::{Deadline, PeerViolation};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

fn soon() -> Option<Deadline> {
    Some(Deadline::after(Duration::from_millis(5)))
}

fn forever() -> Option<Deadline> {
    Some(Deadline::after(FOREVER))
}

fn join(publisher: &Connection) -> Subscriber<Untrusted, Futex> {
    Subscriber::join_within(publisher, 0, MOST_MEMORY).unwrap()
}

#[test]
fn subscribers_that_hold_back_receive_every_message() {
    // Short ones, and such as are copied in bulk.
    every_message_is_received(512);
    every_message_is_received(1 << 14);
}

fn every_message_is_received(capacity: u64) {
    let mut publisher: Publisher<Futex> = Publisher::waiting_by(capacity).unwrap();
    let longest = publisher.longest();
    let subscribers: Vec<Subscriber<_, Futex>> =
        (0..3).map(|_| publisher.subscribe_waiting_by(WhenSlow::HoldBack).unwrap()).collect();
    let receiving: Vec<_> = subscribers
        .into_iter()
        .map(|mut subscriber| {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                for expected in 0..5000 {
                    assert_eq!(subscriber.recv_into_deadline(&mut bytes, forever()).unwrap(), Some(0));
                    assert_eq!(number(&bytes, longest), expected);
                }
                subscriber.recv_into_deadline(&mut bytes, forever()).unwrap_err()
            })
        })
        .collect();
    for number in 0..5000 {
        publisher.publish_deadline(&message(number, longest), forever()).unwrap();
    }
    drop(publisher);
    for receiving in receiving {
        assert_eq!(receiving.join().unwrap(), RecvError::Closed);
    }
}

/// Waits in an event loop: `poll` says when there is something.
fn poll_for(subscriber: &mut Subscriber<doorbell::peer::Trusted, Futex>) {
    if !subscriber.listen().unwrap() {
        let timeout = Timespec { tv_sec: 60, tv_nsec: 0 };
        let file = subscriber.file().unwrap();
        assert!(poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&timeout)).unwrap() > 0, "hung");
    }
}

#[test]
fn an_event_loop_hears_what_is_published_and_that_the_publisher_left() {
    let mut publisher: Publisher<Futex> = Publisher::waiting_by(256).unwrap();
    let mut subscriber = publisher.subscribe_waiting_by::<Futex>(WhenSlow::HoldBack).unwrap();
    let publishing = thread::spawn(move || {
        for number in 0..5000_u64 {
            publisher.publish_deadline(&number.to_ne_bytes(), forever()).unwrap();
            if number % 100 == 0 {
                // So that the other falls asleep.
                thread::sleep(Duration::from_micros(100));
            }
        }
    });
    let (mut bytes, mut expected) = (Vec::new(), 0_u64);
    loop {
        match subscriber.try_recv_into(&mut bytes) {
            Ok(Some(lost)) => {
                assert_eq!((lost, &bytes[..]), (0, &expected.to_ne_bytes()[..]));
                expected += 1;
            }
            Ok(None) => poll_for(&mut subscriber),
            Err(error) => {
                assert_eq!((error, expected), (RecvError::Closed, 5000));
                break;
            }
        }
    }
    assert!(subscriber.listen().unwrap(), "there is an end to tell, again and again");
    publishing.join().unwrap();
}

#[test]
fn an_event_loop_hears_that_its_subscription_was_dropped() {
    let mut publisher: Publisher<Futex> = Publisher::waiting_by(256).unwrap();
    let mut subscriber = publisher.subscribe_waiting_by::<Futex>(WhenSlow::Drop).unwrap();
    assert!(!subscriber.listen().unwrap());
    while publisher.subscribers() > 0 {
        publisher.publish(b"faster than it reads").unwrap();
    }
    let mut bytes = Vec::new();
    let told = loop {
        poll_for(&mut subscriber);
        if let Err(error) = subscriber.try_recv_into(&mut bytes) {
            break error;
        }
    };
    assert_eq!(told, RecvError::Dropped);
    assert!(subscriber.listen().unwrap());
}

/// Parts of all lengths at all offsets, in any order.
#[test]
fn a_message_made_in_place_has_the_bytes_that_were_written_and_no_others() {
    let mut publisher: Publisher = Publisher::new(1 << 13).unwrap();
    let mut subscriber: Subscriber<doorbell::peer::Trusted> =
        publisher.subscribe(WhenSlow::HoldBack).unwrap();
    let mut received = Vec::new();
    for (length, part) in [(1, 1), (7, 3), (8, 8), (9, 2), (64, 5), (100, 7), (1024, 13), (2500, 1100)] {
        let bytes: Vec<u8> = (0..length).map(|index| (index * 31 + part) as u8).collect();
        let mut offsets: Vec<usize> = (0..length).step_by(part).collect();
        offsets.reverse();
        publisher
            .publish_in_place(length, soon(), |draft| {
                assert_eq!(draft.size(), length);
                for at in offsets {
                    let end = length.min(at + part);
                    assert_eq!(draft.write(at, &bytes[at..end]), end - at);
                }
                assert_eq!((draft.write(length, b"beyond"), draft.write(usize::MAX, b"beyond")), (0, 0));
            })
            .unwrap();
        publisher.publish(b"behind").unwrap();
        subscriber.recv_into(&mut received).unwrap();
        assert_eq!(received, bytes);
        subscriber.recv_into(&mut received).unwrap();
        assert_eq!(received, b"behind");
    }
}

#[test]
fn a_message_whose_making_panics_is_not_published() {
    let mut publisher: Publisher = Publisher::new(4096).unwrap();
    let mut subscriber: Subscriber<doorbell::peer::Trusted> =
        publisher.subscribe(WhenSlow::HoldBack).unwrap();
    let mut received = Vec::new();
    for _ in 0..100 {
        let making = std::panic::AssertUnwindSafe(|| {
            publisher.publish_in_place(300, soon(), |_| panic!("made nothing"))
        });
        assert!(std::panic::catch_unwind(making).is_err());
        assert_eq!(subscriber.try_recv_into(&mut received), Ok(None));
        publisher.publish(b"whole").unwrap();
        assert_eq!(subscriber.try_recv_into(&mut received), Ok(Some(0)));
        assert_eq!(received, b"whole");
    }
}

#[test]
fn a_subscriber_with_gaps_is_told_exactly_how_many_messages_it_missed() {
    const COUNT: u64 = 200_000;
    let mut publisher: Publisher = Publisher::new(256).unwrap();
    let longest = publisher.longest();
    let mut subscriber = publisher.subscribe_waiting_by::<Futex>(WhenSlow::Gap).unwrap();
    let receiving = thread::spawn(move || {
        let (mut bytes, mut next, mut received) = (Vec::new(), 0, 0_u64);
        loop {
            match subscriber.recv_into_deadline(&mut bytes, forever()) {
                Ok(lost) => {
                    next += lost.expect("hung");
                    assert_eq!(number(&bytes, longest), next, "a torn message, or a wrong count");
                    next += 1;
                    received += 1;
                }
                Err(error) => break (error, next, received),
            }
        }
    });
    for number in 0..COUNT {
        publisher.publish(&message(number, longest)).unwrap();
    }
    assert_eq!(publisher.subscribers(), 1);
    drop(publisher);
    let (error, next, received) = receiving.join().unwrap();
    assert_eq!((error, next), (RecvError::Closed, COUNT), "the last messages are still there");
    assert!(received > 0);
}

#[test]
fn what_a_subscriber_holds_is_not_overwritten_by_a_publisher_that_holds_back() {
    let mut publisher: Publisher = Publisher::new(256).unwrap();
    let mut subscriber = publisher.subscribe_waiting_by::<Futex>(WhenSlow::HoldBack).unwrap();
    assert_eq!(subscriber.try_recv_batch().unwrap().count(), 0);
    for round in 0..100_u8 {
        let mut count = 0;
        while publisher.try_publish(&[round + count; 24]).is_ok() {
            count += 1;
        }
        assert!(count >= 4, "the room of the last round was not given back");
        let held: Vec<_> = subscriber.recv_batch().unwrap().collect();
        assert_eq!(publisher.try_publish(&[0; 24]), Err(SendError::Full), "round {round}");
        for (number, message) in (0..count).zip(&held) {
            // SAFETY: it was admitted with `HoldBack`, and lives.
            assert_eq!(unsafe { message.bytes() }, [round + number; 24]);
            assert_eq!((message.to_vec(), message.lost()), (Some(vec![round + number; 24]), 0));
        }
        assert_eq!(held.len(), usize::from(count));
        assert_eq!(subscriber.try_recv_batch().unwrap().count(), 0);
    }
    // Of what was not taken out nothing is lost.
    publisher.publish(b"one").unwrap();
    publisher.publish(b"two").unwrap();
    assert_eq!(subscriber.recv_batch().unwrap().take(1).count(), 1);
    let mut bytes = Vec::new();
    subscriber.recv_into(&mut bytes).unwrap();
    assert_eq!(bytes, b"two");
    drop(publisher);
    assert_eq!(subscriber.recv_batch().map(Iterator::count), Err(RecvError::Closed));
}

#[test]
fn what_is_read_in_place_and_is_intact_was_not_overwritten() {
    const COUNT: u64 = 100_000;
    let mut publisher: Publisher = Publisher::new(512).unwrap();
    let longest = publisher.longest();
    let mut subscriber = publisher.subscribe_waiting_by::<Futex>(WhenSlow::Gap).unwrap();
    // Found before, overwritten while it is held.
    publisher.publish(&message(0, longest)).unwrap();
    let held: Vec<_> = subscriber.recv_batch().unwrap().collect();
    (1..9).for_each(|number| publisher.publish(&message(number, longest)).unwrap());
    assert_eq!((held[0].is_intact(), held[0].to_vec()), (false, None));
    let receiving = thread::spawn(move || {
        let (mut bytes, mut next, mut intact) = ([0; 512], 1, 0_u64);
        loop {
            match subscriber.recv_batch_deadline(forever()) {
                Ok(batch) => {
                    let held: Vec<_> = batch.take(2).collect();
                    assert!(!held.is_empty(), "hung");
                    for published in held {
                        next += published.lost();
                        if let Some(length) = published.copy_to(&mut bytes) {
                            assert_eq!(number(&bytes[..length], longest), next, "a torn message");
                            intact += 1;
                        }
                        next += 1;
                    }
                }
                Err(error) => break (error, next, intact),
            }
        }
    });
    (9..COUNT).for_each(|number| publisher.publish(&message(number, longest)).unwrap());
    drop(publisher);
    let (error, next, intact) = receiving.join().unwrap();
    assert_eq!((error, next), (RecvError::Closed, COUNT), "the last messages are still there");
    assert!(intact > 0);
}

#[test]
fn a_subscriber_that_is_too_slow_is_dropped_and_both_sides_are_told() {
    let mut publisher: Publisher = Publisher::new(256).unwrap();
    let mut slow = publisher.subscribe_waiting_by::<Futex>(WhenSlow::Drop).unwrap();
    let mut slow_in_place = publisher.subscribe_waiting_by::<Futex>(WhenSlow::Drop).unwrap();
    let mut patient = publisher.subscribe_waiting_by::<Futex>(WhenSlow::Gap).unwrap();
    for _ in 0..20 {
        publisher.publish(b"one of many messages").unwrap();
    }
    assert_eq!(publisher.ended(), [(0, Ended::Dropped), (1, Ended::Dropped)]);
    assert_eq!(publisher.ended(), []);
    assert_eq!(publisher.subscribers(), 1);
    let mut bytes = Vec::new();
    while let Ok(Some(_)) = slow.try_recv_into(&mut bytes) {}
    assert_eq!(slow.try_recv_into(&mut bytes).unwrap_err(), RecvError::Dropped);
    while let Ok(batch) = slow_in_place.try_recv_batch() {
        batch.for_each(drop);
    }
    assert_eq!(slow_in_place.try_recv_batch().map(Iterator::count), Err(RecvError::Dropped));
    assert!(patient.recv_into(&mut bytes).unwrap() > 0);
}

#[test]
fn a_subscriber_that_holds_back_is_waited_for_until_the_deadline() {
    let mut publisher: Publisher = Publisher::new(256).unwrap();
    let mut subscriber = publisher.subscribe_waiting_by::<Futex>(WhenSlow::HoldBack).unwrap();
    let full = loop {
        if let Err(error) = publisher.publish_deadline(&[7; 40], soon()) {
            break error;
        }
    };
    assert_eq!(full, SendError::TimedOut);
    let waiting = thread::spawn(move || {
        publisher.publish_deadline(&[8; 40], forever()).unwrap();
        publisher
    });
    let mut bytes = Vec::new();
    while bytes != [8; 40] {
        assert_eq!(subscriber.recv_into_deadline(&mut bytes, forever()).unwrap(), Some(0));
    }
    let mut publisher = waiting.join().unwrap();
    drop(subscriber);
    publisher.publish(&[9; 40]).unwrap();
    assert_eq!(publisher.ended(), [(0, Ended::Left)]);
}

#[test]
fn a_killed_subscriber_holds_nobody_back_and_is_named() {
    let segments = [segment(1, 1, 64), segment(1, 1, 64)];
    let mut publisher: Publisher = Publisher::new(512).unwrap();
    let longest = publisher.longest();
    let (dying, mut other) = start("subscribe 3", &segments[0]);
    let (living, _living) = start("subscribe 1000000", &segments[1]);
    assert_eq!(publisher.admit(&dying, 0, WhenSlow::HoldBack).unwrap(), 0);
    assert_eq!(publisher.admit(&living, 0, WhenSlow::HoldBack).unwrap(), 1);
    let mut local = publisher.subscribe_waiting_by::<Futex>(WhenSlow::Gap).unwrap();
    for number in 0..500 {
        publisher.publish_deadline(&message(number, longest), forever()).unwrap();
        if number == 3 {
            // It stops after three messages and would hold us back for ever.
            other.kill();
        }
    }
    assert_eq!(publisher.ended(), [(0, Ended::Gone(dying.peer().id()))]);
    assert_eq!(publisher.subscribers(), 2);
    let mut bytes = Vec::new();
    local.recv_into(&mut bytes).unwrap();
    number(&bytes, longest);
}

/// The file the subscriber was given, opened again with all rights the process has.
#[test]
fn nobody_but_the_publisher_can_ever_write_the_log() {
    // No other test has a log as large.
    let (capacity, size) = (1 << 20, (1 << 20) + 4096);
    let _publisher: Publisher = Publisher::new(capacity).unwrap();
    let logs: Vec<_> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            std::fs::read_link(path).is_ok_and(|to| to.starts_with("/memfd:doorbell-log (deleted)"))
                // Those that other tests are making just now are not sealed yet.
                && std::fs::metadata(path).is_ok_and(|log| log.len() == size)
        })
        .collect();
    assert!(!logs.is_empty());
    for log in logs {
        // Another test of this process may have closed it meanwhile.
        let Ok(file) = std::fs::File::options().read(true).write(true).open(log) else { continue };
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is asked for.
        let mapped = unsafe { mmap(std::ptr::null_mut(), 4096, rights, MapFlags::SHARED, &file, 0) };
        assert_eq!(mapped.unwrap_err(), rustix::io::Errno::PERM);
        assert_eq!(rustix::io::write(&file, b"x").unwrap_err(), rustix::io::Errno::PERM);
    }
}

#[test]
fn a_subscriber_maps_the_log_without_the_right_to_write() {
    // No other test has a log as large.
    let (capacity, size) = (1 << 19, (1 << 19) + 4096);
    let mut publisher: Publisher = Publisher::new(capacity).unwrap();
    let _subscriber = publisher.subscribe_waiting_by::<Futex>(WhenSlow::Gap).unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let logs = maps.lines().filter(|line| line.contains("/memfd:doorbell-log")).filter_map(|line| {
        let (addresses, rest) = line.split_once(' ')?;
        let (begin, end) = addresses.split_once('-')?;
        let [begin, end] = [begin, end].map(|address| u64::from_str_radix(address, 16).unwrap());
        (end - begin == size).then(|| rest.split(' ').next().unwrap())
    });
    let mut rights: Vec<_> = logs.collect();
    rights.sort_unstable();
    assert_eq!(rights, ["r--s", "rw-s"], "the subscriber's and the publisher's");
}

#[test]
fn a_subscriber_that_lies_about_its_cursor_is_ended_and_costs_the_others_nothing() {
    let segment = segment(1, 1, 64);
    let (connection, hostile) = meet(&segment);
    let mut publisher: Publisher = Publisher::new(256).unwrap();
    publisher.admit(&connection, 0, WhenSlow::HoldBack).unwrap();
    let _liar = join(&hostile);
    let mut honest = publisher.subscribe_waiting_by::<Futex>(WhenSlow::HoldBack).unwrap();
    Raw::of(&segment).payload(CONTROL).store(1 << 40, Ordering::Relaxed);
    publisher.publish(b"to the honest").unwrap();
    assert!(matches!(
        publisher.ended()[..],
        [(0, Ended::Violation(PeerViolation::IndexOutOfRange { theirs: 0x100_0000_0000, .. }))]
    ));
    let mut bytes = Vec::new();
    assert_eq!(honest.recv_into(&mut bytes).unwrap(), 0);
    assert_eq!(bytes, b"to the honest");
}

/// What the subscriber before it left in the lane was taken for its own end.
#[test]
fn whoever_has_left_or_was_dropped_can_subscribe_again() {
    let (connection, theirs) = meet(&segment(1, 1, 64));
    let mut publisher: Publisher = Publisher::new(256).unwrap();
    let mut bytes = Vec::new();
    publisher.admit(&connection, 0, WhenSlow::HoldBack).unwrap();
    drop(join(&theirs));
    publisher.publish(b"nobody").unwrap();
    assert_eq!(publisher.ended(), [(0, Ended::Left)]);

    publisher.admit(&connection, 0, WhenSlow::Drop).unwrap();
    publisher.publish(b"early").unwrap();
    assert_eq!(publisher.ended(), [], "the second has not even come");
    let mut second = join(&theirs);
    assert_eq!(second.try_recv_into(&mut bytes), Ok(Some(0)));
    assert_eq!(bytes, b"early");
    while publisher.subscribers() > 0 {
        publisher.publish(b"more than it takes").unwrap();
    }
    assert_eq!(publisher.ended(), [(1, Ended::Dropped)]);
    drop(second);

    publisher.admit(&connection, 0, WhenSlow::Drop).unwrap();
    let mut third = join(&theirs);
    publisher.publish(b"last").unwrap();
    drop(publisher);
    assert_eq!(third.try_recv_into(&mut bytes), Ok(Some(0)));
    assert_eq!(bytes, b"last");
    assert_eq!(third.try_recv_into(&mut bytes), Err(RecvError::Closed));
}

/// It stayed, held everybody back, and its number was known to nobody.
#[test]
fn a_subscriber_that_hung_up_before_it_got_the_log_has_no_place() {
    let (connection, theirs) = meet(&segment(1, 1, 64));
    drop(theirs);
    let mut publisher: Publisher = Publisher::new(256).unwrap();
    publisher.admit(&connection, 0, WhenSlow::HoldBack).unwrap_err();
    assert_eq!(publisher.subscribers(), 0);
}

/// It read on with gaps, for as long as more was published.
#[test]
fn a_subscriber_that_was_dropped_is_told_instead_of_receiving_what_comes_behind_the_gap() {
    let mut publisher: Publisher = Publisher::new(256).unwrap();
    let mut slow = publisher.subscribe_waiting_by::<Futex>(WhenSlow::Drop).unwrap();
    let mut bytes = Vec::new();
    let told = (0..50).find_map(|_| {
        // Three for each that it takes.
        (0..3).for_each(|_| publisher.publish(b"one of many messages").unwrap());
        match slow.try_recv_into(&mut bytes) {
            Ok(lost) => {
                assert_eq!(lost, Some(0), "its subscription is over");
                None
            }
            Err(error) => Some(error),
        }
    });
    assert_eq!(told, Some(RecvError::Dropped));
    assert_eq!(slow.try_recv_into(&mut bytes), Err(RecvError::Dropped));
}

/// Each that had come and gone was kept, and asked for whenever another came.
#[test]
fn subscribers_that_come_and_go_without_a_message_leave_nothing_behind() {
    let mut publisher: Publisher = Publisher::new(4096).unwrap();
    let stays = publisher.subscribe_waiting_by::<Futex>(WhenSlow::HoldBack).unwrap();
    for _ in 0..5000 {
        drop(publisher.subscribe_waiting_by::<Futex>(WhenSlow::HoldBack).unwrap());
        assert!(publisher.subscribers() <= 16, "{}", publisher.subscribers());
    }
    let ended = publisher.ended();
    assert_eq!(ended.len(), 1024, "the last are told, however many there were");
    assert!(ended.contains(&(5000, Ended::Left)) && publisher.subscribers() == 1);
    drop(stays);
}

/// iceoryx2 and DDS have it: who comes late asked for the state, and
/// nobody told it before it changed.
#[test]
fn who_comes_late_is_given_the_last_messages_as_far_as_the_log_has_them() {
    let mut publisher: Publisher<Futex> = Publisher::waiting_by(512).unwrap();
    let longest = publisher.longest();
    let mut bytes = Vec::new();
    for next in 0..300 {
        let mut late = Vec::new();
        for history in [0, 1, 2, 3, 1000] {
            publisher.set_history(history);
            let mut subscriber = publisher.subscribe_waiting_by::<Futex>(WhenSlow::HoldBack).unwrap();
            let mut given = Vec::new();
            while let Some(missed) = subscriber.try_recv_into(&mut bytes).unwrap() {
                assert_eq!(missed, 0);
                given.push(number(&bytes, longest));
            }
            late.push((history, subscriber, given));
        }
        let (_, _, all) = late.last().unwrap();
        let all = all.clone();
        assert!(all.iter().rev().copied().eq((0..next).rev().take(all.len())), "{all:?} before {next}");
        assert_eq!(all.is_empty(), next == 0);
        publisher.publish(&message(next, longest)).unwrap();
        for (history, mut subscriber, given) in late {
            assert_eq!(given, all[all.len().saturating_sub(history)..]);
            assert_eq!(subscriber.try_recv_into(&mut bytes), Ok(Some(0)), "and then what comes");
            assert_eq!(number(&bytes, longest), next);
        }
    }
}
