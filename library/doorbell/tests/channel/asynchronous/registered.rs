// SPDX-License-Identifier: MIT OR Apache-2.0
//! What making an end to be awaited does, what is counted of its waits, and what it gives back.

use super::{on_both_runtimes, try_once};
use crate::other::segment;
use doorbell::channel::broadcast::{Publisher, WhenSlow};
use doorbell::channel::{Gather, Receiver, RecvError, Sender, pair};
use doorbell::peer::Trusted;
use doorbell::wait::Adaptive;
use doorbell::{Async, AsyncBell, Bell, WaitError};

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

/// Making it looked for the room of an empty message, and ended the
/// subscriptions that were in its way.
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

/// A wait before which the file was not yet watched was counted twice, and one that ended with an
/// error made one with the next.
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
