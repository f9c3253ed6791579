// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several messages at once; senders that come and go; a send to nobody.

use crate::other::FOREVER;
use doorbell::channel::{AttachError, Lanes, Receiver, RecvError, SendError, Sender, pair, senders};
use doorbell::peer::Trusted;
use doorbell::rendezvous::{Offer, Segment};
use std::thread;
use std::time::Duration;

#[test]
fn all_messages_that_are_there_may_be_held_at_once() {
    let (mut sender, mut receiver) = pair(4096).unwrap();
    for number in 0..20_u64 {
        sender.send(&number.to_ne_bytes()).unwrap();
    }
    assert_eq!((receiver.len(), receiver.is_empty()), (20, false));
    let held: Vec<_> = receiver.recv_batch().unwrap().take(15).collect();
    for (number, message) in (0..15_u64).zip(&held) {
        assert_eq!(message.bytes(), number.to_ne_bytes());
    }
    assert_eq!(receiver.len(), 5, "what was not taken out stays");
    assert_eq!(receiver.try_recv_batch().unwrap().count(), 5);
    assert_eq!(receiver.try_recv_batch().unwrap().count(), 0);
    assert!(receiver.is_empty());
}

#[test]
fn room_is_given_back_behind_a_batch_that_took_the_whole_ring() {
    const MESSAGES: u64 = 50_000;
    let (mut sender, mut receiver) = pair(256).unwrap();
    let sending = thread::spawn(move || {
        for number in 0..MESSAGES {
            sender.send_timeout(&number.to_ne_bytes(), FOREVER).unwrap();
        }
    });
    let mut next = 0_u64;
    loop {
        match receiver.recv_batch() {
            Ok(batch) => {
                for message in batch {
                    assert_eq!(message.bytes(), next.to_ne_bytes());
                    next += 1;
                }
            }
            Err(error) => {
                assert_eq!(error, RecvError::Closed);
                break;
            }
        }
    }
    assert_eq!(next, MESSAGES);
    sending.join().unwrap();
}

#[test]
fn senders_come_and_go_and_each_is_heard() {
    let (senders, mut gather) = senders(2, 4096).unwrap();
    let first = senders.sender().unwrap();
    let mut second = senders.clone().sender().unwrap();
    assert!(matches!(senders.sender().unwrap_err(), AttachError::Taken { .. }), "as many as may be");
    drop(first);
    let mut third = senders.sender().unwrap();
    second.send(b"second").unwrap();
    third.send(b"third").unwrap();
    drop((second, third, senders));
    let mut heard: Vec<_> = gather.iter().map(|received| received.unwrap().1).collect();
    heard.sort();
    assert_eq!(heard, [b"second".to_vec(), b"third".to_vec()], "and then no sender is left");
}

/// It waited for ever.
#[test]
fn a_send_to_nobody_says_so_when_the_ring_is_full() {
    let segment = Segment::for_threads(&Offer::of_lanes(Lanes::new(1, 1, 4096).unwrap())).unwrap();
    let mut sender: Sender<Trusted> = Sender::at(&segment, 0).unwrap();
    assert!(!sender.has_receiver());
    while sender.try_send(&[7; 500]) != Err(SendError::Full) {}
    assert_eq!(sender.send(&[7; 500]), Err(SendError::NoReceiver));
    assert_eq!(sender.send_timeout(&[7; 500], Duration::from_millis(1)), Err(SendError::NoReceiver));
    let receiver: Receiver<Trusted> = Receiver::at(&segment, 0).unwrap();
    assert!(sender.has_receiver());
    assert_eq!(sender.send_timeout(&[7; 500], Duration::from_millis(1)), Err(SendError::TimedOut));
    drop(receiver);
    assert_eq!(sender.send(&[7; 500]), Err(SendError::Closed));
}

#[test]
fn one_who_waits_between_processes_waits_for_a_receiver_to_come() {
    let segment = Segment::for_children(&Offer::of_lanes(Lanes::new(1, 1, 4096).unwrap())).unwrap();
    let mut sender: Sender<Trusted> = Sender::at(&segment, 0).unwrap();
    while sender.try_send(&[7; 500]) != Err(SendError::Full) {}
    thread::scope(|scope| {
        let sending = scope.spawn(move || sender.send(&[8; 500]));
        thread::sleep(Duration::from_millis(20));
        let mut receiver: Receiver<Trusted> = Receiver::at(&segment, 0).unwrap();
        while receiver.recv_timeout(FOREVER).unwrap().expect("hung")[0] != 8 {}
        sending.join().unwrap().unwrap();
    });
}
