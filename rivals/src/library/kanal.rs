// SPDX-License-Identifier: MIT OR Apache-2.0
//! kanal.

use super::{Library, Receives, Sends};
use kanal::{Receiver, Sender, bounded};
use std::time::Duration;

pub struct Kanal;

impl<T: Send + 'static> Library<T> for Kanal {
    type Sender = Sender<T>;
    type Receiver = Receiver<T>;
    fn bounded(room: usize) -> (Self::Sender, Self::Receiver) {
        bounded(room)
    }
}

impl<T: Send + 'static> Sends<T> for Sender<T> {
    #[inline(always)]
    fn send(&mut self, value: T) {
        assert!(Sender::send(self, value).is_ok(), "the partner lives");
    }
    #[inline(always)]
    fn try_send(&mut self, value: &mut Option<T>) -> bool {
        // It leaves in the option what there was no room for.
        self.try_send_option(value).expect("the partner lives")
    }
}

impl<T: Send + 'static> Receives<T> for Receiver<T> {
    #[inline(always)]
    fn receive(&mut self) -> T {
        self.recv().expect("the partner lives")
    }
    #[inline(always)]
    fn try_receive(&mut self) -> Option<T> {
        self.try_recv().expect("the partner lives")
    }
    fn receive_within(&mut self, limit: Duration) -> Option<T> {
        self.recv_timeout(limit).ok()
    }
}
