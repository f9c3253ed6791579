// SPDX-License-Identifier: MIT OR Apache-2.0
//! ipc-channel: a receive with a time-out.

use super::channel::Receives;
use super::{MakeNotifier, Opened, opened};
use crate::partner::Place;
use std::rc::Rc;

pub fn timeout(_: Place, notifiers: usize) -> Result<Opened, String> {
    let (sender, receiver) = ipc_channel::ipc::channel::<u64>().map_err(|error| error.to_string())?;
    let make = move |_| {
        let sender = sender.clone();
        let notifier: MakeNotifier =
            Box::new(move || Box::new(move || assert!(sender.send(0).is_ok(), "the receiver lives")));
        notifier
    };
    Ok(opened(notifiers, make, move || {
        let receiver = Rc::new(receiver);
        let same = Rc::clone(&receiver);
        Receives {
            receive: move |limit| receiver.try_recv_timeout(limit).is_ok(),
            try_receive: move || same.try_recv().is_ok(),
        }
    }))
}
