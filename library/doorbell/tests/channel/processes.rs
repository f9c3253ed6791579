// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels between processes.

use crate::meet::meet;
use crate::other::{FOREVER, message, number, segment, start};
use doorbell::channel::{AttachError, Receiver, SendError, Sender};
use doorbell::rendezvous::{Offer, Segment};
use std::sync::Arc;

#[test]
fn what_is_sent_to_another_process_comes_back() {
    let segment = segment(2, 2, 4096);
    let (connection, _other) = start("echo", &segment);
    let mut requests: Sender = Sender::attach(&connection, 0).unwrap();
    let mut answers: Receiver = Receiver::attach(&connection, 1).unwrap();
    let longest = requests.longest();
    for expected in 0..3000 {
        requests.send_timeout(&message(expected, longest), FOREVER).unwrap();
        let answer = answers.recv_timeout(FOREVER).unwrap().expect("hung");
        assert_eq!(number(&answer.to_vec(), longest), expected);
    }
}

#[test]
fn a_stream_from_another_process_arrives_whole() {
    let segment = segment(1, 1, 1 << 14);
    let (connection, _other) = start("send 0", &segment);
    let mut receiver: Receiver = Receiver::attach(&connection, 0).unwrap();
    let longest = segment.lanes().unwrap().longest();
    let mut bytes = Vec::new();
    for expected in 0..10_000 {
        receiver.recv_timeout(FOREVER).unwrap().expect("hung").copy_to_vec(&mut bytes);
        assert_eq!(number(&bytes, longest), expected);
    }
}

#[test]
fn a_killed_receiver_is_named_and_its_successor_misses_nothing() {
    let segment = segment(1, 1, 256);
    let (connection, other) = start("receive 50", &segment);
    let mut sender: Sender = Sender::attach(&connection, 0).unwrap();
    let longest = sender.longest();
    let mut sent = 0;
    let error = loop {
        match sender.send_timeout(&message(sent, longest), FOREVER) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error, SendError::PeerGone(connection.peer().id()));
    assert!(sent >= 50);
    drop(other);
    let (_host, successor) = meet(&segment);
    let mut receiver: Receiver = Receiver::attach(&successor, 0).unwrap();
    let mut next = None;
    while let Some(message) = receiver.try_recv().unwrap() {
        let number = number(&message.to_vec(), longest);
        assert!(next.is_none_or(|next| next == number), "in order");
        assert!(next.is_some() || number <= 50, "nothing is missed");
        next = Some(number + 1);
    }
    assert_eq!(next, Some(sent));
    sender.try_send(&message(sent, longest)).unwrap();
    assert_eq!(number(&receiver.recv().unwrap().to_vec(), longest), sent);
}

#[test]
fn a_segment_without_channels_says_so() {
    let segment = Arc::new(Segment::new(&Offer::default()).unwrap());
    let (_host, connection) = meet(&segment);
    let refused = Receiver::<_, doorbell::wait::Adaptive>::attach(&connection, 0).unwrap_err();
    assert_eq!(refused, AttachError::NoChannels);
}

#[test]
fn a_payload_that_holds_channels_is_lent_to_nobody() {
    let segment = segment(1, 1, 4096);
    assert!(segment.payload().is_empty());
    assert!(segment.mapping().payload().is_empty());
}
