// SPDX-License-Identifier: MIT OR Apache-2.0
//! iceoryx2's publish and subscribe: polled, and with its event as the wake. Messages are written
//! and read where they lie.

use super::depth;
use crate::channels::idle::poll;
use crate::channels::link::{End, Link, Place, link};
use crate::channels::many::{SENDERS, gather};
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::*;
use std::time::Duration;

type Service = ipc::Service;

struct Ends<const S: usize> {
    publisher: Publisher<Service, [u8; S], ()>,
    subscriber: Subscriber<Service, [u8; S], ()>,
    /// Where the receiver sleeps. `None`: it polls.
    event: Option<(Notifier<Service>, Listener<Service>)>,
    late: u64,
    _node: Node<Service>,
}

/// So long a sleep lasts at most: a message found after that was
/// there without a wake-up, and is counted as late.
const PATIENCE: Duration = Duration::from_millis(100);

fn open<const S: usize>(process: u32, out: &str, back: &str, sleeps: bool, senders: usize) -> Ends<S> {
    set_log_level(LogLevel::Error);
    let node = NodeBuilder::new().create::<Service>().expect("a node");
    let name = |direction: &str, what: &str| {
        let name = format!("doorbell-rivals/{process}/{S}/{sleeps}/{direction}/{what}");
        ServiceName::new(&name).expect("a name")
    };
    let messages = |direction| {
        node.service_builder(&name(direction, "messages"))
            .publish_subscribe::<[u8; S]>()
            .max_publishers(senders)
            .max_subscribers(1)
            .subscriber_max_buffer_size(depth(S))
            .enable_safe_overflow(false)
            .open_or_create()
            .expect("a service")
    };
    let publisher = messages(out)
        .publisher_builder()
        .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
        .create()
        .expect("a publisher");
    let subscriber = messages(back).subscriber_builder().create().expect("a subscriber");
    let events = |direction| {
        node.service_builder(&name(direction, "event")).event().open_or_create().expect("an event")
    };
    let event = sleeps.then(|| {
        let notifier = events(out).notifier_builder().create().expect("a notifier");
        (notifier, events(back).listener_builder().create().expect("a listener"))
    });
    Ends { publisher, subscriber, event, late: 0, _node: node }
}

impl<const S: usize> Ends<S> {
    /// How many subscribers it reached.
    #[inline(always)]
    fn publish(&self, message: &[u8; S]) -> usize {
        let mut sample = self.publisher.loan_uninit().expect("memory");
        sample.payload_mut().write(*message);
        // SAFETY: all of it was written.
        unsafe { sample.assume_init() }.send().expect("sent")
    }
}

impl<const S: usize> End<S> for Ends<S> {
    #[inline(always)]
    fn send(&mut self, message: &[u8; S]) {
        // Nobody there yet: the partner is still opening.
        while self.publish(message) == 0 {
            self.publisher.update_connections().expect("connected");
        }
        if let Some((notifier, _)) = &self.event {
            notifier.notify().expect("notified");
        }
    }
    #[inline(always)]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        let attempt = || self.subscriber.receive().expect("received");
        let Some((_, listener)) = &self.event else {
            return read(poll(attempt).payload());
        };
        let mut timed_out = false;
        loop {
            if let Some(sample) = attempt() {
                self.late += u64::from(timed_out);
                return read(sample.payload());
            }
            timed_out = listener.timed_wait(|_| {}, PATIENCE).expect("waited") == 0;
        }
    }
    fn late(&self) -> u64 {
        self.late
    }
}

pub fn pair<const S: usize>(sleeps: bool) -> Result<Box<dyn Link>, String> {
    let process = std::process::id();
    link::<S, _, _>(
        Place::Processes,
        move || open::<S>(process, "there", "back", sleeps, 1),
        move || open::<S>(process, "back", "there", sleeps, 1),
    )
}

pub fn many<const S: usize>(sleeps: bool) -> Result<Box<dyn Link>, String> {
    let process = std::process::id();
    // Each has its other direction for itself, and does not use it.
    let theirs = (0..SENDERS)
        .map(|number| move || open::<S>(process, "many", &format!("unused-{number}"), sleeps, SENDERS))
        .collect();
    gather::<S, _, _>(Place::Processes, move || open::<S>(process, "unused", "many", sleeps, SENDERS), theirs)
}
