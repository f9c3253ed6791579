// SPDX-License-Identifier: MIT OR Apache-2.0
//! tokio's `Notify` and its channel, awaited in a runtime of one thread.

use super::channel::Receives;
use super::{Opened, ROOM, by_mail, each, opened};
use crate::partner::Place;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// A permit is kept for one wait.
pub fn notify_one(_: Place, count: usize) -> Result<Opened, String> {
    let notify = Arc::new(Notify::new());
    let make = each(Arc::clone(&notify), |notify| notify.notify_one());
    Ok(opened(count, make, move || {
        let runtime = runtime();
        by_mail(move |limit, _| runtime.block_on(async { timeout(limit, notify.notified()).await.is_ok() }))
    }))
}

/// Only who is enabled is woken: enable, look again, wait.
pub fn notify_waiters(_: Place, count: usize) -> Result<Opened, String> {
    let notify = Arc::new(Notify::new());
    let make = each(Arc::clone(&notify), |notify| notify.notify_waiters());
    Ok(opened(count, make, move || {
        let runtime = runtime();
        by_mail(move |limit, ready| {
            runtime.block_on(async {
                let mut notified = std::pin::pin!(notify.notified());
                notified.as_mut().enable();
                ready() || timeout(limit, notified).await.is_ok()
            })
        })
    }))
}

pub fn mpsc(_: Place, count: usize) -> Result<Opened, String> {
    let (sender, receiver) = mpsc::channel::<u64>(ROOM);
    let make = each(sender, |sender| assert!(sender.blocking_send(0).is_ok(), "the receiver lives"));
    Ok(opened(count, make, move || Receives {
        from: (runtime(), receiver),
        receive: |(runtime, receiver), limit| {
            runtime.block_on(async { timeout(limit, receiver.recv()).await.is_ok_and(|some| some.is_some()) })
        },
        try_receive: |(_, receiver)| receiver.try_recv().is_ok(),
    }))
}
