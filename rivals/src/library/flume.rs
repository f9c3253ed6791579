// SPDX-License-Identifier: MIT OR Apache-2.0
//! flume.

use super::{Library, Receives, Sends};
use flume::{Receiver, Sender, TrySendError, bounded};
use std::time::Duration;

pub struct Flume;

impl<T: Send + 'static> Library<T> for Flume {
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
        match value.take().map(|value| Sender::try_send(self, value)) {
            Some(Err(TrySendError::Full(back) | TrySendError::Disconnected(back))) => {
                *value = Some(back);
                false
            }
            _ => true,
        }
    }
}

impl<T: Send + 'static> Receives<T> for Receiver<T> {
    #[inline(always)]
    fn receive(&mut self) -> T {
        self.recv().expect("the partner lives")
    }
    #[inline(always)]
    fn try_receive(&mut self) -> Option<T> {
        self.try_recv().ok()
    }
    fn receive_within(&mut self, limit: Duration) -> Option<T> {
        self.recv_timeout(limit).ok()
    }
}
