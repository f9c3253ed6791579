// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels of values: each notification is a message, and the receiver takes one at a time.

use super::{Heard, MakeNotifier, Opened, ROOM, Waiter, opened};
use crate::library::{Library, Receives as _, Sends as _};
use crate::partner::Place;
use crate::wakes::shared::Mail;
use std::cell::RefCell;
use std::rc::Rc;
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

/// A library's channel.
pub fn bounded<L: Library<u64, Sender: Clone>>(_: Place, notifiers: usize) -> Result<Opened, String> {
    let (sender, receiver) = L::bounded(ROOM);
    let make = move |_| {
        let mut sender = sender.clone();
        let notifier: MakeNotifier = Box::new(move || Box::new(move || sender.send(0)));
        notifier
    };
    Ok(opened(notifiers, make, move || {
        let receiver = Rc::new(RefCell::new(receiver));
        let same = Rc::clone(&receiver);
        Receives {
            receive: move |limit| receiver.borrow_mut().receive_within(limit).is_some(),
            try_receive: move || same.borrow_mut().try_receive().is_some(),
        }
    }))
}
