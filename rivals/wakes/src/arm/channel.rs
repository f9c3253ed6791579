// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels of values: each notification is a message, and the receiver takes one at a time.

use super::{Heard, Waiter};
use crate::shared::Mail;
use std::time::Duration;

/// By a receive with a time-out, and one that does not wait. Each says whether there was a message.
pub struct Receives<R, T> {
    pub receive: R,
    pub try_receive: T,
}

impl<R: FnMut(Duration) -> bool, T: FnMut() -> bool> Waiter for Receives<R, T> {
    fn wait(&mut self, limit: Duration, _: &Mail) -> Heard {
        if (self.receive)(limit) { Heard::Woken(1) } else { Heard::TimedOut }
    }
    fn sweep(&mut self, _: &Mail) -> u64 {
        let mut count = 0;
        while (self.try_receive)() {
            count += 1;
        }
        count
    }
}
