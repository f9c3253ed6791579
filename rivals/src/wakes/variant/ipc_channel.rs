// SPDX-License-Identifier: MIT OR Apache-2.0
//! ipc-channel: a receive with a time-out.

use super::channel::Receives;
use super::{Opened, each, opened};
use crate::partner::Place;

pub fn timeout(_: Place, notifiers: usize) -> Result<Opened, String> {
    let (sender, receiver) = ipc_channel::ipc::channel::<u64>().map_err(|error| error.to_string())?;
    let notify = each(sender, |sender| assert!(sender.send(0).is_ok(), "the receiver lives"));
    Ok(opened(notifiers, notify, move || Receives {
        from: receiver,
        receive: |receiver, limit| receiver.try_recv_timeout(limit).is_ok(),
        try_receive: |receiver| receiver.try_recv().is_ok(),
    }))
}
