// SPDX-License-Identifier: MIT OR Apache-2.0
//! thingbuf's blocking channel, whose values have a default: only the numbers of the stress.

use super::{Library, Receives, Sends};
use std::time::Duration;
use thingbuf::mpsc::blocking::{Receiver, Sender, channel};

pub struct Thingbuf;

impl Library<u64> for Thingbuf {
    type Sender = Sender<u64>;
    type Receiver = Receiver<u64>;
    fn bounded(room: usize) -> (Self::Sender, Self::Receiver) {
        channel(room)
    }
}

impl Sends<u64> for Sender<u64> {
    fn send(&mut self, value: u64) {
        assert!(Sender::send(self, value).is_ok(), "the partner lives");
    }
    fn try_send(&mut self, value: &mut Option<u64>) -> bool {
        let sent = value.is_none_or(|value| Sender::try_send(self, value).is_ok());
        if sent {
            *value = None;
        }
        sent
    }
}

impl Receives<u64> for Receiver<u64> {
    fn receive(&mut self) -> u64 {
        self.recv().expect("the partner lives")
    }
    fn try_receive(&mut self) -> Option<u64> {
        self.try_recv().ok()
    }
    fn receive_within(&mut self, limit: Duration) -> Option<u64> {
        self.recv_timeout(limit).ok()
    }
}
