// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits that are begun and dropped in their middle: nothing is lost, and nobody stays asleep.

use super::{dawdle, ends, on_both_runtimes, try_once};
use crate::other::{FOREVER, message, number, segment, start};
use doorbell::channel::{Gather, GatherError, Receiver, RecvError, SendError, Sender};
use doorbell::peer::Trusted;
use doorbell::wait::Adaptive;
use doorbell::{Async, AsyncBell, Bell};
use std::os::unix::process::ExitStatusExt;
use std::thread;

#[test]
fn a_receive_that_is_dropped_in_the_middle_of_its_wait_loses_neither_message_nor_wake() {
    const ROUNDS: u64 = 2500;
    on_both_runtimes(|| async {
        let segment = segment(2, 2, 4096);
        let (connection, _other) = start("echo", &segment);
        let (mut requests, mut answers) = ends(&connection, 0, 1);
        let longest = requests.get_ref().longest();
        let mut received = 0_u64;
        for round in 0..ROUNDS {
            // Nothing is under way: this waits.
            assert!(try_once(answers.recv()).await.is_none());
            requests.send(&message(round, longest)).await.unwrap();
            // The answer comes while waits begin and are dropped, at another step each time.
            for step in 0..round % 5 {
                dawdle(round + step * 7);
                if let Some(answer) = try_once(answers.recv()).await {
                    assert_eq!(number(&answer.unwrap().to_vec(), longest), received);
                    received += 1;
                    break;
                }
            }
            // If none of those took it, it wakes this one, which would hang otherwise.
            if received == round {
                let answer = answers.recv().await.unwrap().to_vec();
                assert_eq!(number(&answer, longest), received);
                received += 1;
            }
        }
        assert_eq!(received, ROUNDS, "nothing lost, nothing twice");
        assert!(answers.get_ref().counts().slept >= ROUNDS);
        // Another way of waiting takes over after a wait that was dropped.
        assert!(try_once(answers.recv()).await.is_none());
        let mut answers = answers.into_inner();
        requests.send(&message(ROUNDS, longest)).await.unwrap();
        let answer = answers.recv_timeout(FOREVER).unwrap().expect("hung").to_vec();
        assert_eq!(number(&answer, longest), ROUNDS);
    });
}

#[test]
fn select_over_three_receivers_in_a_loop_gets_each_message_of_each_once() {
    const EACH: u64 = 3000;
    on_both_runtimes(|| async {
        let segments = [(); 3].map(|()| segment(1, 1, 512));
        let met: Vec<_> =
            segments.iter().map(|segment| start(&format!("send-up-to {EACH}"), segment)).collect();
        let receiver =
            |place: usize| Async::new(Receiver::<_, Adaptive>::attach(&met[place].0, 0).unwrap()).unwrap();
        let (mut first, mut second, mut third) = (receiver(0), receiver(1), receiver(2));
        let longest = segments[0].lanes().unwrap().longest();
        let mut next = [0; 3];
        let mut gone = [false; 3];
        let mut bytes = Vec::new();
        while gone != [true; 3] {
            // The two that do not win are dropped each time, most of them in the middle of a wait.
            let (place, received) = tokio::select! {
                result = first.recv(), if !gone[0] => (0, result.map(|message| message.copy_to_vec(&mut bytes))),
                result = second.recv(), if !gone[1] => (1, result.map(|message| message.copy_to_vec(&mut bytes))),
                result = third.recv(), if !gone[2] => (2, result.map(|message| message.copy_to_vec(&mut bytes))),
            };
            match received {
                Ok(()) => {
                    assert_eq!(number(&bytes, longest), next[place]);
                    next[place] += 1;
                }
                Err(error) => {
                    assert_eq!(error, RecvError::PeerGone(met[place].0.peer().id()));
                    gone[place] = true;
                }
            }
        }
        assert_eq!(next, [EACH; 3], "all that was committed, once");
    });
}

#[test]
fn a_send_that_is_dropped_while_it_waits_for_room_sent_nothing_and_loses_no_wake() {
    const COUNT: u64 = 3000;
    on_both_runtimes(|| async {
        let segment = segment(1, 1, 256);
        // It checks that it receives 0, 1, 2 … and nothing else, and then aborts.
        let (connection, mut other) = start(&format!("receive {COUNT}"), &segment);
        let mut sender: Async<Sender> = Async::new(Sender::attach(&connection, 0).unwrap()).unwrap();
        let longest = sender.get_ref().longest();
        let (mut sent, mut dropped) = (0, 0_u64);
        let told = loop {
            let bytes = message(sent, longest);
            let mut result = None;
            for step in 0..sent % 4 {
                result = try_once(sender.send(&bytes)).await;
                if result.is_some() {
                    break;
                }
                dropped += 1;
                dawdle(sent + step * 5);
            }
            let result = match result {
                Some(result) => result,
                None => sender.send(&bytes).await,
            };
            match result {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(told, SendError::PeerGone(connection.peer().id()));
        assert!(sent >= COUNT && dropped > 0, "{sent} sent, {dropped} dropped");
        assert_eq!(other.0.wait().unwrap().signal(), Some(libc::SIGABRT), "it received something else");
    });
}

#[test]
fn a_bell_that_is_dropped_in_the_middle_of_its_waits_hears_every_ring_of_another_thread() {
    const RINGS: u32 = 4000;
    on_both_runtimes(|| async {
        let bell = Bell::new().unwrap();
        let mut waiter = AsyncBell::new(bell.clone()).unwrap();
        let ringing = thread::spawn(move || {
            for number in 0..RINGS {
                bell.ring();
                dawdle(u64::from(number));
            }
        });
        let mut heard = 0;
        while heard < RINGS {
            if let Some(rings) = try_once(waiter.wait()).await {
                heard += rings.unwrap().get();
            }
            if heard < RINGS {
                heard += waiter.wait().await.unwrap().get();
            }
        }
        assert_eq!(heard, RINGS);
        ringing.join().unwrap();
    });
}

#[test]
fn lanes_may_come_and_go_between_two_waits_of_a_gather() {
    on_both_runtimes(|| async {
        let segments = [(); 2].map(|()| segment(1, 1, 256));
        let mut gather: Async<Gather<Trusted>> = Async::new(Gather::default()).unwrap();
        let nobody = GatherError { lane: None, error: RecvError::Closed };
        assert_eq!(gather.recv().await.map(|(lane, _)| lane), Err(nobody), "there is no lane");
        let mut senders = segments.each_ref().map(|segment| Some(Sender::<Trusted>::at(segment, 0).unwrap()));
        for round in 0..50_u64 {
            let lanes = [0, 1].map(|place: usize| gather.get_mut().add_at(&segments[place], 0).unwrap());
            assert!(try_once(gather.recv()).await.is_none());
            let which = (round % 2) as usize;
            let mut sender = senders[which].take().unwrap();
            let sending = thread::spawn(move || {
                dawdle(round);
                sender.send(&round.to_ne_bytes()).unwrap();
                sender
            });
            let (from, received) =
                gather.recv().await.map(|(lane, message)| (lane, message.to_vec())).unwrap();
            assert_eq!((from, &received[..]), (lanes[which], &round.to_ne_bytes()[..]));
            senders[which] = Some(sending.join().unwrap());
            lanes.into_iter().for_each(|lane| assert!(gather.get_mut().remove(lane)));
            // The only waiter slot is another's by now, though the gather's task has not slept since.
            let receiver: Receiver<Trusted> = Receiver::at(&segments[which], 0).unwrap();
            assert!(try_once(Async::new(receiver).unwrap().recv()).await.is_none());
        }
    });
}
