// SPDX-License-Identifier: MIT OR Apache-2.0
//! iceoryx2's event: a listener by itself, and in its WaitSet as its documentation shows.

use super::{Heard, MakeNotifier, Opened, Waiter, Watch};
use crate::partner::Place;
use crate::wakes::shared::Mail;
use iceoryx2::port::listener::Listener;
use iceoryx2::prelude::*;
use iceoryx2::waitset::{WaitSet, WaitSetGuard};
use std::time::{Duration, Instant};

type Service = ipc::Service;

fn node() -> Node<Service> {
    set_log_level(LogLevel::Error);
    NodeBuilder::new().create::<Service>().expect("a node")
}

fn event(node: &Node<Service>, process: u32) -> iceoryx2::service::port_factory::event::PortFactory<Service> {
    let name = ServiceName::new(&format!("doorbell-rivals-wakes/{process}")).expect("a name");
    node.service_builder(&name).event().max_notifiers(16).open_or_create().expect("an event")
}

fn count(listener: &Listener<Service>) -> u64 {
    let mut count = 0;
    listener.try_wait(|event| count += event.count).expect("asked");
    count
}

struct Listens<'a>(&'a Listener<Service>);

impl Waiter for Listens<'_> {
    fn wait(&mut self, limit: Duration, _: &Mail) -> Heard {
        let (before, mut count) = (Instant::now(), 0);
        self.0.timed_wait(|event| count += event.count, limit).expect("waited");
        if count == 0 && before.elapsed() >= limit { Heard::TimedOut } else { Heard::Woken(count) }
    }
    fn sweep(&mut self, _: &Mail) -> u64 {
        // Twice: the first may only find the state that says that there is something.
        count(self.0) + count(self.0)
    }
}

struct InWaitSet<'a, 'set> {
    listener: &'a Listener<Service>,
    set: &'a WaitSet<Service>,
    guard: &'a WaitSetGuard<'set, 'set, Service>,
    until_nothing: bool,
}

impl Waiter for InWaitSet<'_, '_> {
    fn wait(&mut self, limit: Duration, _: &Mail) -> Heard {
        let mut heard = Heard::TimedOut;
        let on_event = |id: WaitSetAttachmentId<Service>| {
            if id.has_event_from(self.guard) {
                let mut all = count(self.listener);
                while self.until_nothing {
                    let more = count(self.listener);
                    if more == 0 {
                        break;
                    }
                    all += more;
                }
                heard = Heard::Woken(all);
            }
            CallbackProgression::Continue
        };
        self.set.wait_and_process_once_with_timeout(on_event, limit).expect("waited");
        heard
    }
    fn sweep(&mut self, mail: &Mail) -> u64 {
        Listens(self.listener).sweep(mail)
    }
}

fn open(notifiers: usize, wait: fn(&Listener<Service>, &mut dyn FnMut(&mut dyn Waiter))) -> Opened {
    let process = std::process::id();
    let make = move |_| {
        let notifier: MakeNotifier = Box::new(move || {
            let node = node();
            let notifier = event(&node, process).notifier_builder().create().expect("a notifier");
            Box::new(move || {
                let _ = &node;
                notifier.notify().expect("notified");
            })
        });
        notifier
    };
    let watch: Watch = Box::new(move |then| {
        let node = node();
        let listener = event(&node, process).listener_builder().create().expect("a listener");
        wait(&listener, then);
    });
    Opened { notifiers: (0..notifiers).map(make).collect(), watch }
}

fn in_wait_set(listener: &Listener<Service>, until_nothing: bool, then: &mut dyn FnMut(&mut dyn Waiter)) {
    let set = WaitSetBuilder::new().create::<Service>().expect("a WaitSet");
    let guard = set.attach_notification(listener).expect("attached");
    then(&mut InWaitSet { listener, set: &set, guard: &guard, until_nothing });
}

pub fn listener(_: Place, notifiers: usize) -> Result<Opened, String> {
    Ok(open(notifiers, |listener, then| then(&mut Listens(listener))))
}

pub fn wait_set(_: Place, notifiers: usize) -> Result<Opened, String> {
    Ok(open(notifiers, |listener, then| in_wait_set(listener, false, then)))
}

pub fn wait_set_until_nothing(_: Place, notifiers: usize) -> Result<Opened, String> {
    Ok(open(notifiers, |listener, then| in_wait_set(listener, true, then)))
}
