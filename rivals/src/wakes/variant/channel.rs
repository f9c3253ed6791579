// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels of values: each notification is a message, and the receiver takes one at a time.

use super::{Heard, Opened, ROOM, Waiter, each, opened};
use crate::library::{Library, Receives as _, Sends as _};
use crate::partner::Place;
use crate::wakes::shared::Mail;
use std::time::Duration;

/// By a receive with a time-out, and one that does not wait. Each says whether there was a message.
pub struct Receives<T> {
    pub from: T,
    pub receive: fn(&mut T, Duration) -> bool,
    pub try_receive: fn(&mut T) -> bool,
}

impl<T> Waiter for Receives<T> {
    fn wait(&mut self, limit: Duration, _: &Mail) -> Heard {
        if (self.receive)(&mut self.from, limit) { Heard::Woken(1) } else { Heard::TimedOut }
    }
    fn sweep(&mut self, _: &Mail) -> u64 {
        let mut count = 0;
        while (self.try_receive)(&mut self.from) {
            count += 1;
        }
        count
    }
}

/// A library's channel.
pub fn bounded<L: Library<u64, Sender: Clone>>(_: Place, notifiers: usize) -> Result<Opened, String> {
    let (sender, receiver) = L::bounded(ROOM);
    Ok(opened(notifiers, each(sender, |sender| sender.send(0)), move || Receives {
        from: receiver,
        receive: |receiver, limit| receiver.receive_within(limit).is_some(),
        try_receive: |receiver| receiver.try_receive().is_some(),
    }))
}
