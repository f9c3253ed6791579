// SPDX-License-Identifier: MIT OR Apache-2.0
//! ipc-channel's channels of bytes.

use crate::channels::link::{End, Link, Place, link};
use ipc_channel::ipc::{IpcBytesReceiver, IpcBytesSender, bytes_channel};

struct Ends(IpcBytesSender, IpcBytesReceiver);

impl<const S: usize> End<S> for Ends {
    fn send(&mut self, message: &[u8; S]) {
        self.0.send(message).expect("the partner lives");
    }
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        let message = self.1.recv().expect("the partner lives");
        read(message.as_slice().try_into().expect("the size sent"));
    }
}

pub fn blocking<const S: usize>() -> Result<Box<dyn Link>, String> {
    let channel = || bytes_channel().map_err(|error| format!("bytes_channel: {error}"));
    let ((out, their_in), (their_out, back)) = (channel()?, channel()?);
    link::<S, _, _>(Place::Processes, move || Ends(out, back), move || Ends(their_out, their_in))
}
