// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks whose peers are killed.

use super::{ends, on_both_runtimes, try_once};
use crate::other::{Other, number, segment, start};
use doorbell::channel::broadcast::{Ended, Publisher, Subscriber, WhenSlow};
use doorbell::channel::{Gather, GatherError, RecvError, SendError};
use doorbell::peer::Trusted;
use doorbell::rendezvous::Connection;
use doorbell::{Async, AsyncBell, Bell, WaitError};
use std::thread;
use std::time::Duration;

#[test]
fn a_receiver_and_a_sender_that_are_awaited_are_told_that_their_peer_was_killed() {
    on_both_runtimes(|| async {
        for round in 0..10 {
            let segment = segment(2, 2, 256);
            // It sends nothing by itself, and stops listening when the way back is full.
            let (connection, mut other) = start("echo", &segment);
            let gone = connection.peer().id();
            let (mut requests, mut answers) = ends(&connection, 0, 1);
            let killing = thread::spawn(move || {
                thread::sleep(Duration::from_micros(round * 100));
                other.kill();
            });
            let receiving = async {
                if round % 2 == 0 {
                    // Waits for what never comes.
                    assert_eq!(answers.recv().await.unwrap_err(), RecvError::PeerGone(gone));
                }
            };
            let sending = async {
                if round % 2 == 1 {
                    // Waits for room that never comes: nobody takes the answers.
                    let refused = loop {
                        if let Err(error) = requests.send(&[0; 64]).await {
                            break error;
                        }
                    };
                    assert_eq!(refused, SendError::PeerGone(gone));
                }
            };
            tokio::join!(receiving, sending);
            killing.join().unwrap();
        }
    });
}

#[test]
fn a_bell_that_is_awaited_tells_that_its_peer_was_killed() {
    on_both_runtimes(|| async {
        let segment = segment(1, 1, 256);
        let (connection, mut other) = start("send-on 0", &segment);
        let bell: Bell = connection.bell_waiting_by(0).unwrap();
        let mut bell = AsyncBell::new(bell).unwrap();
        let killing = thread::spawn(move || other.kill());
        let told = loop {
            if let Err(error) = bell.wait().await {
                break error;
            }
        };
        assert_eq!(told, WaitError::PeerGone(connection.peer().id()));
        killing.join().unwrap();
    });
}

#[test]
fn a_gather_that_is_awaited_hears_each_of_its_bells_and_outlives_a_sender_that_is_killed() {
    on_both_runtimes(|| async {
        let segments = [(); 3].map(|()| segment(1, 1, 1 << 12));
        // The first sends until it is killed, the others once.
        let mut met: Vec<(Connection, Other)> = vec![start("send 0", &segments[0])];
        met.extend(segments[1..].iter().map(|segment| start("send-on 0", segment)));
        let mut gather: Gather = Gather::default();
        for (connection, _) in &met {
            gather.add(connection, 0).unwrap();
        }
        let mut gather = Async::new(gather).unwrap();
        let longest = segments[0].lanes().unwrap().longest();
        let (mut next, mut heard) = (0, [0_u32; 3]);
        while next < 2000 || heard[1..] != [1, 1] {
            if let Some(received) = try_once(gather.recv()).await {
                let (lane, message) = received.unwrap();
                take(lane, &message.to_vec(), longest, &mut next, &mut heard);
                continue;
            }
            let (lane, message) = gather.recv().await.unwrap();
            take(lane, &message.to_vec(), longest, &mut next, &mut heard);
        }
        met[0].1.kill();
        let told = loop {
            match gather.recv().await {
                Ok((lane, message)) => take(lane, &message.to_vec(), longest, &mut next, &mut heard),
                Err(error) => break error,
            }
        };
        let gone = RecvError::PeerGone(met[0].0.peer().id());
        assert_eq!(told, GatherError { lane: Some(0), error: gone });
        assert!(try_once(gather.recv()).await.is_none(), "the other two are there");
        met[1].1.kill();
        let told = gather.recv().await.map(|(lane, _)| lane).unwrap_err();
        assert_eq!(told.lane, Some(1));
    });
}

/// A message of lane 0 is the next of a stream, of another lane a single one.
fn take(lane: usize, bytes: &[u8], longest: u64, next: &mut u64, heard: &mut [u32; 3]) {
    heard[lane] += 1;
    if lane == 0 {
        assert_eq!(number(bytes, longest), *next);
        *next += 1;
    } else {
        assert_eq!(bytes, [0; 8]);
    }
}

#[test]
fn a_subscriber_that_is_awaited_misses_nothing_and_is_told_that_the_publisher_was_killed() {
    const COUNT: u64 = 3000;
    on_both_runtimes(|| async {
        let segment = segment(1, 1, 0);
        // It publishes so many, held back by us, and is then killed.
        let (connection, mut other) = start(&format!("publish {COUNT}"), &segment);
        let subscriber: Subscriber = Subscriber::join(&connection, 0).unwrap();
        let mut subscriber = Async::new(subscriber).unwrap();
        let (mut expected, mut dropped, mut bytes) = (0_u64, 0_u64, Vec::new());
        while expected < COUNT {
            let received = match try_once(subscriber.recv_into(&mut bytes)).await {
                Some(received) => received,
                None => {
                    dropped += 1;
                    subscriber.recv_into(&mut bytes).await
                }
            };
            assert_eq!((received, &bytes[..]), (Ok(0), &expected.to_ne_bytes()[..]));
            expected += 1;
        }
        assert!(try_once(subscriber.recv_into(&mut bytes)).await.is_none(), "{dropped} dropped before");
        let killing = thread::spawn(move || other.kill());
        let told = subscriber.recv_into(&mut bytes).await.unwrap_err();
        assert_eq!(told, RecvError::PeerGone(connection.peer().id()));
        killing.join().unwrap();
    });
}

#[test]
fn a_publisher_awaits_each_subscriber_that_holds_it_back_and_goes_on_when_one_is_killed() {
    const COUNT: u64 = 2000;
    on_both_runtimes(|| async {
        let mut publisher: Publisher = Publisher::new(256).unwrap();
        let segment = segment(1, 1, 0);
        // It takes twenty messages, and then no more.
        let (connection, mut other) = start("subscribe 20", &segment);
        let number = publisher.admit(&connection, 0, WhenSlow::HoldBack).unwrap();
        let mut publisher = Async::new(publisher).unwrap();
        let receiving: Vec<_> = (0..2)
            .map(|_| {
                let subscriber: Subscriber<Trusted> =
                    publisher.get_mut().subscribe(WhenSlow::HoldBack).unwrap();
                let mut subscriber = Async::new(subscriber).unwrap();
                tokio::spawn(async move {
                    let (mut expected, mut bytes) = (0_u64, Vec::new());
                    loop {
                        match subscriber.recv_into(&mut bytes).await {
                            Ok(lost) => assert_eq!((lost, &bytes[..]), (0, &expected.to_ne_bytes()[..])),
                            Err(error) => break (error, expected),
                        }
                        expected += 1;
                    }
                })
            })
            .collect();
        // Whenever it happens, sooner or later the dead one has held everybody back.
        let killing = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            other.kill();
        });
        for number in 0..COUNT {
            if try_once(publisher.publish(&number.to_ne_bytes())).await.is_none() {
                publisher.publish(&number.to_ne_bytes()).await.unwrap();
            }
        }
        killing.join().unwrap();
        assert_eq!(publisher.get_mut().ended(), [(number, Ended::Gone(connection.peer().id()))]);
        drop(publisher);
        for receiving in receiving {
            assert_eq!(receiving.await.unwrap(), (RecvError::Closed, COUNT));
        }
    });
}
