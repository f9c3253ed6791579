// SPDX-License-Identifier: MIT OR Apache-2.0
//! The standard library's channel.

use super::{Library, Receives, Sends};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

pub struct StdMpsc;

impl<T: Send + 'static> Library<T> for StdMpsc {
    type Sender = SyncSender<T>;
    type Receiver = Receiver<T>;
    fn bounded(room: usize) -> (Self::Sender, Self::Receiver) {
        sync_channel(room)
    }
}

impl<T: Send + 'static> Sends<T> for SyncSender<T> {
    #[inline(always)]
    fn send(&mut self, value: T) {
        assert!(SyncSender::send(self, value).is_ok(), "the partner lives");
    }
    #[inline(always)]
    fn try_send(&mut self, value: &mut Option<T>) -> bool {
        match value.take().map(|value| SyncSender::try_send(self, value)) {
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
