// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends that tokio tasks await: with real traffic from other processes, dropped in the middle of a wait, with dying peers,
//! on a runtime with one thread and on one with several.
#![allow(unexpected_cfgs, reason = "`ci/sanitize` sets it")]

use crate::hostile::{Raw, meet};
use crate::other::{FOREVER, Other, message, number, segment, start};
use doorbell::channel::broadcast::{Ended, Publisher, Subscriber, WhenSlow};
use doorbell::channel::{Gather, GatherError, Receiver, RecvError, SendError, Sender, many, pair};
use doorbell::peer::Trusted;
use doorbell::rendezvous::Connection;
use doorbell::wait::Adaptive;
use doorbell::{Async, AsyncBell, Bell, WaitError};
use std::future::{Future, poll_fn};
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::coop::unconstrained;

/// Runs `task` on a runtime of one thread and on one of two, each time as a task of the runtime. A task that is never woken,
/// or never gives way to others, is a hang that is found.
fn on_both_runtimes<F>(task: impl Fn() -> F + Send + Clone + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut runtimes = vec![Builder::new_current_thread()];
    // The thread sanitizer does not see into the locks of std by which the threads of the other pass tasks on.
    #[cfg(not(thread_sanitizer))]
    runtimes.push(Builder::new_multi_thread());
    for mut runtime in runtimes {
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        let task = task.clone();
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            let result = runtime.block_on(async { tokio::spawn(task()).await });
            let _ = done.send(result);
        });
        let ended = is_done.recv_timeout(FOREVER).expect("hung");
        if let Err(error) = ended {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

/// Polls `future` once and drops it if it is not done: in the middle of its wait, not because the task's turn is over.
async fn try_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(unconstrained(future));
    poll_fn(|cx| {
        Poll::Ready(match future.as_mut().poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

/// Lets some time pass, so that the other process is found at another step in each round.
fn dawdle(round: u64) {
    (0..round % 64 * 40).for_each(|_| std::hint::spin_loop());
}

fn ends(connection: &Connection, out: u32, back: u32) -> (Async<Sender>, Async<Receiver>) {
    let sender = Async::new(Sender::attach(connection, out).unwrap()).unwrap();
    (sender, Async::new(Receiver::attach(connection, back).unwrap()).unwrap())
}

#[test]
fn what_one_task_sends_to_another_process_comes_back_to_it_with_both_rings_full() {
    const COUNT: u64 = 3000;
    on_both_runtimes(|| async {
        let segment = segment(2, 2, 256);
        let (connection, _other) = start("echo", &segment);
        let (mut requests, mut answers) = ends(&connection, 0, 1);
        let longest = requests.get_ref().longest();
        // In one task: each of the two waits again and again while the other goes on.
        let sending = async {
            for number in 0..COUNT {
                requests.send(&message(number, longest)).await.unwrap();
            }
        };
        let receiving = async {
            let mut bytes = Vec::new();
            for expected in 0..COUNT {
                answers.recv_into(&mut bytes).await.unwrap();
                assert_eq!(number(&bytes, longest), expected);
            }
        };
        tokio::join!(sending, receiving);
    });
}

#[test]
fn two_tasks_of_a_runtime_converse_and_the_one_that_stays_is_told_that_the_other_left() {
    on_both_runtimes(|| async {
        let (sender, receiver) = pair(256).unwrap();
        let (mut sender, mut receiver) = (Async::new(sender).unwrap(), Async::new(receiver).unwrap());
        let sending = tokio::spawn(async move {
            for number in 0..20_000_u64 {
                let mut slot = sender.reserve(8).await.unwrap();
                slot.copy_from_slice(&number.to_ne_bytes());
                slot.commit().unwrap();
            }
        });
        for expected in 0..20_000_u64 {
            assert_eq!(receiver.recv().await.unwrap()[..], expected.to_ne_bytes());
        }
        assert_eq!(receiver.recv().await.unwrap_err(), RecvError::Closed);
        sending.await.unwrap();
    });
}

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
        // Another way of waiting takes over behind a wait that was dropped.
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
fn what_was_pushed_is_rung_before_a_task_waits_for_room() {
    on_both_runtimes(|| async {
        let (sender, receiver) = pair(256).unwrap();
        let (mut sender, mut receiver) = (Async::new(sender).unwrap(), Async::new(receiver).unwrap());
        let receiving = tokio::spawn(async move {
            let mut received = 0;
            while receiver.recv().await.is_ok() {
                received += 1;
            }
            received
        });
        // On a runtime of one thread it sleeps from here on.
        tokio::task::yield_now().await;
        let mut sent = 0;
        while sender.get_mut().push(b"quietly").is_ok() {
            sent += 1;
        }
        sender.send(b"aloud").await.unwrap();
        drop(sender);
        assert_eq!(receiving.await.unwrap(), sent + 1);
    });
}

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

#[test]
fn a_slot_is_had_by_one_at_a_time_and_is_free_when_the_end_is_dropped() {
    on_both_runtimes(|| async {
        let bell = Bell::new().unwrap();
        for _ in 0..20 {
            let mut first = AsyncBell::new(bell.clone()).unwrap();
            assert!(try_once(first.wait()).await.is_none());
            let refused = AsyncBell::new(bell.clone()).unwrap_err();
            assert_eq!(refused, WaitError::NoWaiterSlot { slots: 1 });
        }
    });
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

#[test]
fn tasks_that_always_find_messages_and_room_leave_the_runtime_to_others_too() {
    on_both_runtimes(|| async {
        let (senders, gather) = many(1, 4096).unwrap();
        let mut sender = Async::new(senders.into_iter().next().unwrap()).unwrap();
        let mut gather = Async::new(gather).unwrap();
        let for_ever = async {
            loop {
                sender.send(b"one more").await.unwrap();
                gather.recv().await.unwrap();
            }
        };
        let ended: Result<(), _> = tokio::time::timeout(Duration::from_millis(5), for_ever).await;
        assert!(ended.is_err());
    });
}

#[test]
fn a_peer_that_wakes_again_and_again_does_not_keep_a_task_from_its_time_out() {
    on_both_runtimes(|| async {
        let segment = segment(2, 2, 512);
        let (ours, theirs) = meet(&segment);
        let hostile = Hostile::new(move || theirs.segment().state(0).unwrap().announce());
        let mut receiver: Async<Receiver> = Async::new(Receiver::attach(&ours, 0).unwrap()).unwrap();
        let ended = tokio::time::timeout(Duration::from_millis(20), receiver.recv()).await;
        assert!(ended.is_err());
        drop(hostile);
    });
}

/// Each new word in the sender's place is a reason to look again.
#[test]
fn a_peer_that_comes_again_and_again_does_not_keep_a_task_from_its_time_out() {
    on_both_runtimes(|| async {
        let segment = segment(2, 2, 512);
        let (ours, theirs) = meet(&segment);
        let raw = Raw::of(&segment);
        let hostile = Hostile::new(move || {
            raw.attachments().fetch_add(1, Ordering::Relaxed);
            theirs.segment().state(0).unwrap().announce();
        });
        let mut receiver: Async<Receiver> = Async::new(Receiver::attach(&ours, 0).unwrap()).unwrap();
        let ended = tokio::time::timeout(Duration::from_millis(20), receiver.recv()).await;
        assert!(ended.is_err());
        drop(hostile);
    });
}

/// A thread that does the same again and again until this is dropped.
struct Hostile {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Hostile {
    fn new(act: impl Fn() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                act();
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[cfg(feature = "zerocopy")]
#[test]
fn values_of_one_type_are_sent_and_awaited() {
    use doorbell::channel::{TypedReceiver, TypedSender};
    on_both_runtimes(|| async {
        let (sender, receiver) = pair(256).unwrap();
        let mut sender = Async::new(TypedSender::<[u64; 2], _, _>::new(sender)).unwrap();
        let mut receiver = Async::new(TypedReceiver::<[u64; 2], _, _>::new(receiver)).unwrap();
        let sending = tokio::spawn(async move {
            for number in 0..2000 {
                sender.send(&[number, !number]).await.unwrap();
            }
        });
        for number in 0..2000 {
            assert_eq!(receiver.recv().await, Ok([number, !number]));
        }
        assert_eq!(receiver.recv().await, Err(RecvError::Closed));
        sending.await.unwrap();
    });
}

#[cfg(feature = "stream")]
#[test]
fn a_gather_is_a_stream_that_ends_when_all_senders_have_left() {
    use futures_core::Stream;
    use std::pin::Pin;
    on_both_runtimes(|| async {
        let (senders, gather) = many(3, 256).unwrap();
        let mut gather = Async::new(gather).unwrap();
        let sending: Vec<_> = senders
            .into_iter()
            .map(|sender| {
                let mut sender = Async::new(sender).unwrap();
                tokio::spawn(async move {
                    for number in 0..1000_u64 {
                        sender.send(&number.to_ne_bytes()).await.unwrap();
                    }
                })
            })
            .collect();
        let mut next = [0_u64; 3];
        while let Some(received) = poll_fn(|cx| Pin::new(&mut gather).poll_next(cx)).await {
            let (lane, message) = received.unwrap();
            assert_eq!(message, next[lane].to_ne_bytes());
            next[lane] += 1;
        }
        assert_eq!(next, [1000; 3]);
        for sending in sending {
            sending.await.unwrap();
        }
    });
}

/// The end of the last one was told again and again: who wrote it down and went on never came to the end.
#[cfg(feature = "stream")]
#[test]
fn a_stream_tells_once_that_a_sender_was_killed_then_ends_and_goes_on_with_the_next() {
    use futures_core::Stream;
    use std::pin::Pin;
    async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
        poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await
    }
    on_both_runtimes(|| async {
        let segments = [(); 3].map(|()| segment(1, 1, 256));
        let mut met = segments.each_ref().map(|segment| start("send-on 0", segment));
        let gone = met.each_ref().map(|(connection, _)| RecvError::PeerGone(connection.peer().id()));
        let mut gather: Gather = Gather::default();
        for (connection, _) in &met[..2] {
            gather.add(connection, 0).unwrap();
        }
        let mut gather = Async::new(gather).unwrap();
        let receiver: Receiver = Receiver::attach(&met[2].0, 0).unwrap();
        let mut receiver = Async::new(receiver).unwrap();
        let mut heard =
            [next(&mut gather).await.unwrap().unwrap().0, next(&mut gather).await.unwrap().unwrap().0];
        heard.sort_unstable();
        assert_eq!(heard, [0, 1]);
        assert_eq!(next(&mut receiver).await, Some(Ok(vec![0; 8])));
        met.iter_mut().for_each(|(_, other)| other.kill());
        let mut told =
            [next(&mut gather).await.unwrap().unwrap_err(), next(&mut gather).await.unwrap().unwrap_err()];
        told.sort_unstable_by_key(|error| error.lane);
        assert_eq!(told, [0, 1].map(|lane| GatherError { lane: Some(lane), error: gone[lane] }));
        assert_eq!(next(&mut receiver).await, Some(Err(gone[2])));
        for _ in 0..3 {
            assert_eq!(next(&mut gather).await, None);
            assert_eq!(next(&mut receiver).await, None);
        }
        let _successors = [start("send-on 0", &segments[1]), start("send-on 0", &segments[2])];
        // They may not have attached yet.
        let from_lane = loop {
            if let Some(received) = next(&mut gather).await {
                break received;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(from_lane, Ok((1, vec![0; 8])));
        let from_one = loop {
            if let Some(received) = next(&mut receiver).await {
                break received;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(from_one, Ok(vec![0; 8]));
    });
}

#[test]
fn an_end_is_registered_with_the_runtime_it_is_made_in_and_not_armed_whatever_there_is() {
    on_both_runtimes(|| async {
        let segment = segment(1, 1, 256);
        let _receiver: Async<Receiver<Trusted>> = Async::new(Receiver::at(&segment, 0).unwrap()).unwrap();
        let _sender: Async<Sender<Trusted>> = Async::new(Sender::at(&segment, 0).unwrap()).unwrap();
        for bell in 0..2 {
            assert!(!segment.state(bell).unwrap().record().wake.has_sleepers(), "nobody waits at {bell}");
        }
    });
    let (mut sender, receiver) = pair(256).unwrap();
    sender.send(b"there already").unwrap();
    is_refused_without_a_runtime(receiver);
    is_refused_without_a_runtime(sender);
    is_refused_without_a_runtime(Gather::<Trusted>::default());
    is_refused_without_a_runtime(Publisher::<Adaptive>::new(256).unwrap());
}

fn is_refused_without_a_runtime(end: impl doorbell::Awaitable) {
    let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| Async::new(end).is_ok()));
    assert!(made.is_err(), "no runtime to register with");
}

/// Making it looked for the room of an empty message, and ended the subscriptions that were in its way.
#[test]
fn a_publisher_that_is_made_to_be_awaited_ends_no_subscription() {
    on_both_runtimes(|| async {
        let full = |most: u64| {
            let mut publisher: Publisher = Publisher::new(256).unwrap();
            let subscriber = publisher.subscribe_waiting_by::<Adaptive>(WhenSlow::Drop).unwrap();
            let published = (0..most)
                .take_while(|_| {
                    publisher.publish(&[]).unwrap();
                    publisher.subscribers() == 1
                })
                .count() as u64;
            (publisher, subscriber, published)
        };
        let (.., most) = full(u64::MAX);
        let (publisher, mut subscriber, published) = full(most);
        assert_eq!(published, most);
        let mut publisher = Async::new(publisher).unwrap();
        assert_eq!(publisher.get_mut().ended(), []);
        for _ in 0..most {
            assert_eq!(subscriber.try_recv_into(&mut Vec::new()), Ok(Some(0)));
        }
    });
}

#[test]
fn what_a_task_slept_is_counted_for_those_who_look() {
    on_both_runtimes(|| async {
        let (mut sender, receiver) = pair(256).unwrap();
        let mut receiver = Async::new(receiver).unwrap();
        for _ in 0..3 {
            assert!(try_once(receiver.recv()).await.is_none());
        }
        sender.send(b"at last").unwrap();
        receiver.recv().await.unwrap();
        let counts = receiver.get_ref().counts();
        assert_eq!((counts.slept, counts.woken), (1, 3), "one wait, in three pieces");
        assert_eq!(counts.spun_and_hit + counts.spun_in_vain, 0);
    });
}

/// A wait before which the file was not yet watched was counted twice, and one that ended with an error made one with the
/// next.
#[test]
fn a_sleep_is_counted_once_and_an_error_ends_a_wait() {
    on_both_runtimes(|| async {
        let segment = segment(1, 1, 256);
        let mut sender: Sender<Trusted> = Sender::at(&segment, 0).unwrap();
        sender.send(b"there already").unwrap();
        let receiver: Receiver<Trusted> = Receiver::at(&segment, 0).unwrap();
        let mut receiver = Async::new(receiver).unwrap();
        receiver.recv().await.unwrap();
        let counts = |receiver: &Async<Receiver<Trusted>>| {
            let counts = receiver.get_ref().counts();
            (counts.slept, counts.woken)
        };
        assert!(try_once(receiver.recv()).await.is_none());
        assert_eq!(counts(&receiver), (1, 1));
        drop(sender);
        assert_eq!(receiver.recv().await.map(drop), Err(RecvError::Closed));
        let _next: Sender<Trusted> = Sender::at(&segment, 0).unwrap();
        assert!(try_once(receiver.recv()).await.is_none());
        assert_eq!(counts(&receiver), (2, 2));
    });
}

/// How often a task that does nothing else does `once` before it gives way.
async fn done_in_one_poll(mut once: impl AsyncFnMut()) -> u32 {
    // What went before has had its share.
    tokio::task::yield_now().await;
    let done = std::cell::Cell::new(0);
    let mut forever = pin!(async {
        loop {
            once().await;
            done.set(done.get() + 1);
        }
    });
    poll_fn(|cx| {
        assert!(forever.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    done.get()
}

/// One untrusted client that never stopped sending stopped a runtime: no other task, and no time-out around it, had its turn.
#[test]
fn whoever_always_has_something_gives_way_at_every_end() {
    use doorbell::{AsyncDuplex, AsyncService, Notify};
    const MANY: u32 = 1000;
    let many = |mut once: Box<dyn FnMut()>| (0..MANY).for_each(|_| once());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut done = Vec::new();
        let (mut sender, receiver) = pair(1 << 16).unwrap();
        many(Box::new(move || sender.send(b"message").unwrap()));
        let mut receiver = Async::new(receiver).unwrap();
        done.push(("receiver", done_in_one_poll(async || _ = receiver.recv().await.unwrap()).await));

        let (sender, _receiver) = pair(1 << 16).unwrap();
        let mut sender = Async::new(sender).unwrap();
        done.push(("sender", done_in_one_poll(async || sender.send(b"message").await.unwrap()).await));

        let (mut senders, gather) = many_of(2);
        many(Box::new(move || senders.iter_mut().for_each(|sender| sender.send(b"message").unwrap())));
        let mut gather = Async::new(gather).unwrap();
        done.push(("gather", done_in_one_poll(async || _ = gather.recv().await.unwrap()).await));

        let mut publisher: Publisher = Publisher::new(1 << 16).unwrap();
        let mut subscriber = Async::new(publisher.subscribe(WhenSlow::HoldBack).unwrap()).unwrap();
        many(Box::new(move || publisher.publish(b"message").unwrap()));
        let mut copy = Vec::new();
        done.push((
            "subscriber",
            done_in_one_poll(async || {
                subscriber.recv_into(&mut copy).await.unwrap();
            })
            .await,
        ));

        let mut publisher = Async::new(Publisher::new(1 << 16).unwrap()).unwrap();
        done.push((
            "publisher",
            done_in_one_poll(async || publisher.publish(b"message").await.unwrap()).await,
        ));

        let bell: Bell = Bell::new().unwrap();
        let mut waiter = AsyncBell::new(bell.clone()).unwrap();
        let mut left = MANY;
        let rung = async || {
            left = left.saturating_sub(1);
            if left > 0 {
                bell.ring();
            }
            waiter.wait().await.unwrap();
        };
        done.push(("bell", done_in_one_poll(rung).await));

        let work = doorbell::queue::<u32>(2 * MANY as usize);
        (0..MANY).for_each(|number| work.push(number).unwrap());
        let mut popper = Async::new(work.popper().unwrap()).unwrap();
        done.push((
            "popper",
            done_in_one_poll(async || {
                popper.pop().await.unwrap();
            })
            .await,
        ));
        let mut pusher = Async::new(work.pusher().unwrap()).unwrap();
        done.push(("pusher", done_in_one_poll(async || pusher.push(7).await.unwrap()).await));
        let notify = Notify::new();
        (0..MANY).for_each(|_| notify.notify_one());
        let mut waiter = Async::new(notify.waiter().unwrap()).unwrap();
        done.push(("notify", done_in_one_poll(async || waiter.wait().await.unwrap()).await));

        let path = std::env::temp_dir().join(format!("doorbell-turns-{}", std::process::id()));
        let mut service = AsyncService::new(doorbell::listen(&path).unwrap()).unwrap();
        let mut client = doorbell::connect(&path).unwrap();
        client.send(b"first").unwrap();
        let (who, _) = service.recv().await.unwrap();
        (0..MANY).for_each(|_| client.send(b"message").unwrap());
        done.push(("service", done_in_one_poll(async || drop(service.recv().await.unwrap())).await));
        (0..MANY).for_each(|_| service.get_mut().send(who, b"message").unwrap());
        let mut client = AsyncDuplex::new(client).unwrap();
        done.push(("client", done_in_one_poll(async || drop(client.recv().await.unwrap())).await));
        done.push(("answers", done_in_one_poll(async || service.send(who, b"message").await.unwrap()).await));
        for (end, done) in done {
            assert!((1..MANY).contains(&done), "{end}: {done}");
        }
    });
}

fn many_of(senders: u32) -> (Vec<Sender<Trusted>>, Gather<Trusted>) {
    many(senders, 1 << 16).unwrap()
}

#[test]
fn a_client_connects_talks_and_waits_for_room_without_a_thread() {
    use doorbell::{AsyncService, connect_async};
    on_both_runtimes(|| async {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("doorbell-async-{}-{number}", std::process::id()));
        let absent = connect_async(&path).await.map(drop);
        assert_eq!(absent, Err(doorbell::rendezvous::RendezvousError::NoOwner { path: path.clone() }));
        let mut service = AsyncService::new(doorbell::listen(&path).unwrap()).unwrap();
        const EACH: u32 = 300;
        let client = tokio::spawn(async move {
            let (mut sender, mut receiver) = connect_async(&path).await.unwrap().split();
            let (sent, is_sent) = mpsc::channel();
            let sending = tokio::spawn(async move {
                for _ in 0..EACH {
                    sender.send(&[7; 1000]).await.unwrap();
                    sent.send(()).unwrap();
                }
            });
            // More answers than their ring holds, before the first of them is taken.
            for _ in 0..100 {
                while is_sent.try_recv().is_err() {
                    tokio::task::yield_now().await;
                }
            }
            for _ in 0..EACH {
                assert_eq!(receiver.recv().await.unwrap().to_vec(), [7; 1000]);
            }
            sending.await.unwrap();
        });
        let mut first = None;
        for _ in 0..EACH {
            let (who, message) = service.recv().await.unwrap();
            first = first.or(Some(who));
            service.send(who, &message).await.unwrap();
        }
        client.await.unwrap();
    });
}

#[test]
fn a_task_that_waits_for_work_or_a_permit_takes_each_once_and_hears_of_the_end() {
    on_both_runtimes(|| async {
        let work = doorbell::queue::<u64>(2);
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let mut popper = Async::new(work.popper().unwrap()).unwrap();
                tokio::spawn(async move {
                    let mut sum = 0;
                    while let Ok(number) = popper.pop().await {
                        sum += number;
                    }
                    sum
                })
            })
            .collect();
        let mut pusher = Async::new(work.pusher().unwrap()).unwrap();
        for number in 1..=1000 {
            pusher.push(number).await.unwrap();
        }
        work.close();
        let mut sum = 0;
        for worker in workers {
            sum += worker.await.unwrap();
        }
        assert_eq!(sum, 500_500);
        let notify = Arc::new(doorbell::Notify::new());
        let waiting = tokio::spawn({
            let notify = Arc::clone(&notify);
            async move {
                let mut waiter = Async::new(notify.waiter().unwrap()).unwrap();
                for _ in 0..100 {
                    waiter.wait().await.unwrap();
                }
            }
        });
        (0..100).for_each(|_| notify.notify_one());
        waiting.await.unwrap();
        assert!(!notify.try_wait());
    });
}
