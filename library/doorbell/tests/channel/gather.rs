// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many senders, one receiver.

use crate::meet::meet;
use crate::other::{FOREVER, segment, start};
use doorbell::channel::{AttachError, Gather, GatherError, Lanes, RecvError, Sender, many};
use doorbell::peer::Trusted;
use doorbell::rendezvous::{Offer, Segment};
use doorbell::wait::{Wait, WaitEntry};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::thread;
use std::time::Duration;

#[test]
fn each_of_many_threads_is_heard_in_its_own_order() {
    const SENDERS: u64 = 5;
    const EACH: u64 = 4000;
    let (senders, mut gather) = many(SENDERS as u32, 256).unwrap();
    let sending: Vec<_> = senders
        .into_iter()
        .map(|mut sender| {
            thread::spawn(move || {
                for number in 0..EACH {
                    sender.send_timeout(&number.to_ne_bytes(), FOREVER).unwrap();
                }
            })
        })
        .collect();
    let mut next = [0; SENDERS as usize];
    loop {
        match gather.recv_timeout(FOREVER) {
            Ok(received) => {
                let (lane, message) = received.expect("hung");
                assert_eq!(message.to_vec(), u64::to_ne_bytes(next[lane]));
                next[lane] += 1;
            }
            Err(GatherError { error: RecvError::Closed, .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(next, [EACH; SENDERS as usize], "closed only when all have left");
    assert_eq!(gather.try_recv().unwrap_err().error, RecvError::Closed);
    sending.into_iter().for_each(|sender| sender.join().unwrap());
}

#[test]
fn a_busy_lane_does_not_starve_a_quiet_one() {
    let (mut senders, mut gather) = many(2, 4096).unwrap();
    for _ in 0..50 {
        senders[0].send(b"busy").unwrap();
    }
    senders[1].send(b"quiet").unwrap();
    let first_two: Vec<_> = (0..2).map(|_| gather.recv().unwrap().0).collect();
    assert!(first_two.contains(&1));
}

#[test]
fn untrusted_senders_with_segments_of_their_own_come_and_are_killed_one_by_one() {
    let segments: [_; 3] = std::array::from_fn(|_| segment(1, 1, 4096));
    let mut gather: Gather = Gather::default();
    let mut connections = Vec::new();
    for (number, segment) in segments.iter().enumerate() {
        let (connection, other) = start("send-on 0", segment);
        assert_eq!(gather.add(&connection, 0).unwrap(), number);
        connections.push((connection, other));
    }
    let mut heard: Vec<_> = (0..3).map(|_| gather.recv_timeout(FOREVER).unwrap().expect("hung").0).collect();
    heard.sort_unstable();
    assert_eq!(heard, [0, 1, 2]);
    for (number, (connection, other)) in connections.iter_mut().enumerate() {
        other.kill();
        let told = gather.recv_timeout(FOREVER).unwrap_err();
        let gone = RecvError::PeerGone(connection.peer().id());
        assert_eq!(told, GatherError { lane: Some(number), error: gone });
    }
    // A successor on the segment of the first.
    let (connection, _other) = start("send-on 0", &segments[0]);
    let heard = loop {
        match gather.recv_timeout(FOREVER) {
            Ok(received) => break received.expect("hung").0,
            // Nobody is left: told again and again until the successor attaches.
            Err(error) => assert!(matches!(error.error, RecvError::PeerGone(_))),
        }
    };
    assert_eq!(heard, 0);
    drop(connection);
}

#[test]
fn an_event_loop_hears_every_lane() {
    let (senders, mut gather) = many(3, 256).unwrap();
    let sending: Vec<_> = senders
        .into_iter()
        .map(|mut sender| {
            thread::spawn(move || {
                (0..500_u64).for_each(|number| sender.send(&number.to_ne_bytes()).unwrap());
                sender
            })
        })
        .collect();
    let mut received = 0;
    while received < 1500 {
        while gather.try_recv().unwrap().is_some() {
            received += 1;
        }
        if received < 1500 && !gather.listen().unwrap() {
            let files = gather.files().unwrap();
            let mut polled: Vec<_> = files.iter().map(|file| PollFd::new(file, PollFlags::IN)).collect();
            let timeout = Timespec { tv_sec: 60, tv_nsec: 0 };
            assert!(poll(&mut polled, Some(&timeout)).unwrap() > 0, "hung");
        }
    }
    sending.into_iter().for_each(|sender| drop(sender.join().unwrap()));
}

/// The lane's word is the same before and after: a client that takes a sender for each message did
/// not wake the receiver from its second message on.
#[test]
fn a_sender_that_came_sent_and_left_while_nobody_looked_is_heard() {
    let lanes = Lanes::new(2, 1, 256).unwrap();
    let segment = Segment::for_threads(&Offer::of_lanes(lanes)).unwrap();
    let mut gather: Gather<Trusted> = Gather::at(&segment, 0).unwrap();
    let _alive: Sender<Trusted> = Sender::at(&segment, 1).unwrap();
    for message in [b"first", b"again"] {
        let mut passing: Sender<Trusted> = Sender::at(&segment, 0).unwrap();
        passing.send(message).unwrap();
        drop(passing);
        assert!(gather.listen().unwrap(), "{message:?} lies there");
        assert_eq!(gather.try_recv().unwrap().expect("it lies there").1.to_vec(), message);
        assert!(gather.try_recv().unwrap().is_none(), "and the end is told");
        assert!(!gather.listen().unwrap());
    }
}

/// The kernel takes 128 futexes at once; each receive failed then with EINVAL, and with none at all
/// too. A way of waiting that waits for one bell.
#[derive(Debug, Default)]
struct One;

impl Wait for One {
    const NAME: &'static str = "one";
    const MOST_BELLS: usize = 1;

    fn wait(
        &mut self,
        _: &mut [WaitEntry<'_>],
        mut ready: impl FnMut() -> bool,
        _: Option<doorbell::Deadline>,
    ) -> Result<bool, doorbell::WaitError> {
        Ok(ready())
    }
}

#[test]
fn a_gather_without_lanes_or_with_too_many_bells_says_so() {
    let mut none: Gather = Gather::default();
    let closed = GatherError { lane: None, error: RecvError::Closed };
    assert_eq!(none.recv_timeout(FOREVER).unwrap_err(), closed);
    assert_eq!(none.recv().unwrap_err(), closed);
    assert!(none.listen().unwrap(), "there is something to tell");

    // The smallest of such bounds.
    let segments: [_; 2] = std::array::from_fn(|_| segment(1, 1, 64));
    let connections = segments.each_ref().map(meet);
    let mut gather: Gather<_, One> = Gather::default();
    gather.add(&connections[0].0, 0).unwrap();
    assert_eq!(gather.add(&connections[1].0, 0).unwrap_err(), AttachError::TooManyBells { most: 1 });
    assert!(gather.remove(0));
    gather.add(&connections[1].0, 0).expect("the refused one was left again");
}

/// What never leaves the process need not fit one message.
#[test]
fn more_threads_than_a_message_carries_eventfds_for_can_send() {
    let (mut senders, mut gather) = many(260, 64).unwrap();
    senders[259].send(b"the last").unwrap();
    let (lane, message) = gather.recv_timeout(FOREVER).unwrap().expect("hung");
    assert_eq!((lane, message.to_vec()), (259, b"the last".to_vec()));
}

/// It waited for ever for the five places that nobody took.
#[test]
fn the_end_comes_with_the_last_of_those_who_can_send_however_many_places_were_taken() {
    for taken in [0_u8, 3, 8] {
        let (senders, mut gather) = doorbell::channel::senders(8, 4096).unwrap();
        for number in 0..taken {
            let senders = senders.clone();
            thread::spawn(move || senders.sender().unwrap().send(&[number]).unwrap());
        }
        let counting = thread::spawn(move || gather.iter().count());
        thread::yield_now();
        drop(senders);
        assert_eq!(counting.join().unwrap(), usize::from(taken));
    }
}

/// The other way round: each of its places had been left, so it was
/// at its end, though another sender could be made.
#[test]
fn places_that_were_left_are_no_end_while_another_sender_can_be_made() {
    let (senders, mut gather) = doorbell::channel::senders(2, 4096).unwrap();
    for _ in 0..2 {
        let (mut one, mut two) = (senders.sender().unwrap(), senders.sender().unwrap());
        one.send(b"one").unwrap();
        two.send(b"two").unwrap();
        drop((one, two));
        assert!(gather.try_recv().unwrap().is_some() && gather.try_recv().unwrap().is_some());
        assert!(gather.try_recv().unwrap().is_none(), "another may come");
        assert!(gather.recv_timeout(Duration::from_millis(1)).unwrap().is_none());
    }
    let last = senders.sender().unwrap();
    drop(senders);
    assert!(gather.try_recv().unwrap().is_none(), "it is there");
    drop(last);
    assert_eq!(gather.try_recv().unwrap_err().error, RecvError::Closed);
    assert_eq!(gather.recv().unwrap_err().error, RecvError::Closed, "again and again");
}

#[test]
fn a_sender_is_cloned_as_often_as_one_likes_and_the_last_clone_is_the_end() {
    let (sender, mut gather) = doorbell::channel::mpsc(256).unwrap();
    const CLONES: u64 = 100;
    let mut threads = Vec::new();
    let mut newest = sender;
    for number in 0..CLONES {
        // Each is a clone of the one before it, while those that were made first are at work.
        let next = newest.clone();
        let mut sender = std::mem::replace(&mut newest, next);
        threads.push(thread::spawn(move || {
            for count in 0..50_u64 {
                sender.send(&[number.to_ne_bytes(), count.to_ne_bytes()].concat()).unwrap();
            }
        }));
    }
    drop(newest);
    let mut counts = vec![0; CLONES as usize];
    while let Ok(message) = gather.recv_timeout(FOREVER) {
        let (_, message) = message.expect("hung");
        let (number, count) = message.split_at(8);
        let number = u64::from_ne_bytes(number.try_into().unwrap()) as usize;
        assert_eq!(u64::from_ne_bytes(count.try_into().unwrap()), counts[number], "of one sender in order");
        counts[number] += 1;
    }
    assert!(counts.iter().all(|count| *count == 50), "{counts:?}");
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
