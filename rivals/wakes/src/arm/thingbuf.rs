// SPDX-License-Identifier: MIT OR Apache-2.0
//! thingbuf's blocking channel.

use super::channel::Receives;
use super::{Opened, ROOM, opened};
use rivals_rounds::partner::Place;
use std::rc::Rc;

pub fn bounded(_: Place, notifiers: usize) -> Result<Opened, String> {
    let (sender, receiver) = thingbuf::mpsc::blocking::channel::<u64>(ROOM);
    let make = move |_| {
        let sender = sender.clone();
        let notifier: super::MakeNotifier =
            Box::new(move || Box::new(move || assert!(sender.send(0).is_ok(), "the receiver lives")));
        notifier
    };
    Ok(opened(notifiers, make, move || {
        let receiver = Rc::new(receiver);
        let same = Rc::clone(&receiver);
        Receives {
            receive: move |limit| receiver.recv_timeout(limit).is_ok(),
            try_receive: move || same.try_recv().is_ok(),
        }
    }))
}
