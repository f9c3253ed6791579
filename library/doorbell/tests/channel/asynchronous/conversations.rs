// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that talk: with other processes, with each other, with a service, over a queue of work.

use super::{ends, on_both_runtimes};
use crate::other::{message, number, segment, start};
use doorbell::Async;
use doorbell::channel::{RecvError, pair};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};

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
