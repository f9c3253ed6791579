// SPDX-License-Identifier: MIT OR Apache-2.0
//! crossfire: one to one, and many to one.

use super::{Library, Receives, Sends};
use crossfire::{MTx, Rx, TrySendError, Tx, mpsc, spsc};
use std::time::Duration;

pub struct CrossfirePair;

pub struct CrossfireMany;

/// The same for both: a library's types, how they are made, and what is called.
macro_rules! library {
    ($library:ident, $kind:ident, $sender:ident) => {
        impl<T: Send + Unpin + 'static> Library<T> for $library {
            type Sender = $sender<$kind::Array<T>>;
            type Receiver = Rx<$kind::Array<T>>;
            fn bounded(room: usize) -> (Self::Sender, Self::Receiver) {
                $kind::bounded_blocking(room)
            }
        }

        impl<T: Send + Unpin + 'static> Sends<T> for $sender<$kind::Array<T>> {
            #[inline(always)]
            fn send(&mut self, value: T) {
                assert!(Tx::send(self, value).is_ok(), "the partner lives");
            }
            #[inline(always)]
            fn try_send(&mut self, value: &mut Option<T>) -> bool {
                match value.take().map(|value| Tx::try_send(self, value)) {
                    Some(Err(TrySendError::Full(back) | TrySendError::Disconnected(back))) => {
                        *value = Some(back);
                        false
                    }
                    _ => true,
                }
            }
        }

        impl<T: Send + Unpin + 'static> Receives<T> for Rx<$kind::Array<T>> {
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
    };
}

library!(CrossfirePair, spsc, Tx);
library!(CrossfireMany, mpsc, MTx);
