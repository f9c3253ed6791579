// SPDX-License-Identifier: MIT OR Apache-2.0
//! The standard library's `park_timeout` and `unpark`: unparked
//! before it parks, a thread does not sleep.

use super::{ByMail, MakeNotifier, Opened, Sleep, opened};
use crate::partner::Place;
use std::thread;
use std::time::{Duration, Instant};

struct Parks;

impl Sleep for Parks {
    fn sleep(&mut self, limit: Duration, _: &dyn Fn() -> bool) -> bool {
        let before = Instant::now();
        thread::park_timeout(limit);
        before.elapsed() < limit
    }
}

/// The waiter is made in the thread that opens.
pub fn park(_: Place, notifiers: usize) -> Result<Opened, String> {
    let waiter = thread::current();
    let make = move |_| {
        let waiter = waiter.clone();
        let notifier: MakeNotifier = Box::new(move || Box::new(move || waiter.unpark()));
        notifier
    };
    Ok(opened(notifiers, make, || ByMail(Parks)))
}
