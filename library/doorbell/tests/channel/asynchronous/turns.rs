// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends that always have something, and peers that never rest, leave the runtime to the others.

use super::on_both_runtimes;
use crate::hostile::Raw;
use crate::meet::meet;
use crate::other::segment;
use doorbell::channel::broadcast::{Publisher, WhenSlow};
use doorbell::channel::{Gather, Receiver, Sender, many, pair};
use doorbell::peer::Trusted;
use doorbell::{Async, AsyncBell, Bell};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;
use tokio::runtime::Builder;

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

/// One untrusted client that never stopped sending stopped a runtime: no other task, and no
/// time-out around it, had its turn.
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

        #[cfg(feature = "stream")]
        {
            let (mut sender, receiver) = pair(1 << 16).unwrap();
            many(Box::new(move || sender.send(b"message").unwrap()));
            let mut stream = Async::new(receiver).unwrap();
            let next = async || {
                let mut next = std::pin::Pin::new(&mut stream);
                poll_fn(|cx| futures_core::Stream::poll_next(next.as_mut(), cx)).await.unwrap().unwrap();
            };
            done.push(("stream", done_in_one_poll(next).await));
        }

        #[cfg(feature = "zerocopy")]
        {
            use doorbell::channel::{TypedReceiver, TypedSender};
            let (sender, receiver) = pair(1 << 16).unwrap();
            let mut sender = Async::new(TypedSender::<u64, _, _>::new(sender)).unwrap();
            let sent = done_in_one_poll(async || sender.send(&7).await.unwrap()).await;
            done.push(("sender of values", sent));
            many(Box::new(move || sender.get_mut().try_send(&7).unwrap()));
            let mut receiver = Async::new(TypedReceiver::<u64, _, _>::new(receiver)).unwrap();
            done.push(("values", done_in_one_poll(async || _ = receiver.recv().await.unwrap()).await));
        }

        let (sender, _receiver) = pair(1 << 16).unwrap();
        let mut sender = Async::new(sender).unwrap();
        let reserve = async || sender.reserve(8).await.unwrap().commit().unwrap();
        done.push(("in place", done_in_one_poll(reserve).await));

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
