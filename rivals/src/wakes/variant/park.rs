// SPDX-License-Identifier: MIT OR Apache-2.0
//! The standard library's `park_timeout` and `unpark`: unparked
//! before it parks, a thread does not sleep.

use super::{Opened, by_mail, each, opened};
use crate::partner::Place;
use std::thread;
use std::time::Instant;

/// The waiter is made in the thread that opens.
pub fn park(_: Place, notifiers: usize) -> Result<Opened, String> {
    let notify = each(thread::current(), |waiter| waiter.unpark());
    Ok(opened(notifiers, notify, || {
        by_mail(|limit, _| {
            let before = Instant::now();
            thread::park_timeout(limit);
            before.elapsed() < limit
        })
    }))
}
