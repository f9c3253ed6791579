// SPDX-License-Identifier: MIT OR Apache-2.0
//! tokio's `Notify` and its channel, awaited in a runtime of one thread.

use super::channel::Receives;
use super::{ByMail, MakeNotifier, Opened, ROOM, Sleep, opened};
use crate::partner::Place;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// A permit is kept for one wait.
struct One(Runtime, Arc<Notify>);

impl Sleep for One {
    fn sleep(&mut self, limit: Duration, _: &dyn Fn() -> bool) -> bool {
        self.0.block_on(async { timeout(limit, self.1.notified()).await.is_ok() })
    }
}

/// Only who is enabled is woken: enable, look again, wait.
struct All(Runtime, Arc<Notify>);

impl Sleep for All {
    fn sleep(&mut self, limit: Duration, ready: &dyn Fn() -> bool) -> bool {
        self.0.block_on(async {
            let mut notified = std::pin::pin!(self.1.notified());
            notified.as_mut().enable();
            ready() || timeout(limit, notified).await.is_ok()
        })
    }
}

fn notifiers(notify: &Arc<Notify>, how: fn(&Notify)) -> impl Fn(usize) -> MakeNotifier + use<> {
    let same = Arc::clone(notify);
    move |_| {
        let notify = Arc::clone(&same);
        Box::new(move || Box::new(move || how(&notify)))
    }
}

pub fn notify_one(_: Place, count: usize) -> Result<Opened, String> {
    let notify = Arc::new(Notify::new());
    let make = notifiers(&notify, Notify::notify_one);
    Ok(opened(count, make, move || ByMail(One(runtime(), notify))))
}

pub fn notify_waiters(_: Place, count: usize) -> Result<Opened, String> {
    let notify = Arc::new(Notify::new());
    let make = notifiers(&notify, Notify::notify_waiters);
    Ok(opened(count, make, move || ByMail(All(runtime(), notify))))
}

pub fn mpsc(_: Place, count: usize) -> Result<Opened, String> {
    let (sender, receiver) = mpsc::channel::<u64>(ROOM);
    let make = move |_| {
        let sender = sender.clone();
        let notifier: MakeNotifier = Box::new(move || {
            Box::new(move || assert!(sender.blocking_send(0).is_ok(), "the receiver lives"))
        });
        notifier
    };
    Ok(opened(count, make, move || {
        let (runtime, receiver) = (runtime(), Rc::new(RefCell::new(receiver)));
        let same = Rc::clone(&receiver);
        Receives {
            receive: move |limit| {
                let mut receiver = receiver.borrow_mut();
                runtime.block_on(async {
                    timeout(limit, receiver.recv()).await.is_ok_and(|some| some.is_some())
                })
            },
            try_receive: move || same.borrow_mut().try_recv().is_ok(),
        }
    }))
}
