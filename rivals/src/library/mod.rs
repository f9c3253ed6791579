// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounded channels of values, one library a file: as little of each as both comparisons need.

/// Channels that have the standard library's calls: what makes one, the types of its ends for
/// values of type `T`, and whose functions send.
macro_rules! like_std {
    ($library:ident, $make:path, $sender:ty, $receiver:ty, $sends:ident, $refused:ident) => {
        impl<T: Send + Unpin + 'static> Library<T> for $library {
            type Sender = $sender;
            type Receiver = $receiver;
            fn bounded(room: usize) -> (Self::Sender, Self::Receiver) {
                $make(room)
            }
        }

        impl<T: Send + Unpin + 'static> Sends<T> for $sender {
            #[inline(always)]
            fn send(&mut self, value: T) {
                assert!($sends::send(self, value).is_ok(), "the partner lives");
            }
            #[inline(always)]
            fn try_send(&mut self, value: &mut Option<T>) -> bool {
                match value.take().map(|value| $sends::try_send(self, value)) {
                    Some(Err($refused::Full(back) | $refused::Disconnected(back))) => {
                        *value = Some(back);
                        false
                    }
                    _ => true,
                }
            }
        }

        impl<T: Send + Unpin + 'static> Receives<T> for $receiver {
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

mod crossbeam;
mod crossfire;
mod flume;
mod kanal;
mod std_mpsc;
mod thingbuf;

pub use crossbeam::Crossbeam;
pub use crossfire::{CrossfireMany, CrossfirePair};
pub use flume::Flume;
pub use kanal::Kanal;
pub use std_mpsc::StdMpsc;
pub use thingbuf::Thingbuf;

use std::time::Duration;

/// A library's channel of `T`.
pub trait Library<T> {
    type Sender: Sends<T>;
    type Receiver: Receives<T>;
    fn bounded(room: usize) -> (Self::Sender, Self::Receiver);
}

pub trait Sends<T>: Send + 'static {
    /// Waits as the library does until there is room.
    fn send(&mut self, value: T);
    /// False, and the value is still there, if there is no room.
    fn try_send(&mut self, value: &mut Option<T>) -> bool;
}

pub trait Receives<T>: Send + 'static {
    /// Waits as the library does until there is something.
    fn receive(&mut self) -> T;
    fn try_receive(&mut self) -> Option<T>;
    /// `None` if nothing came in time.
    fn receive_within(&mut self, limit: Duration) -> Option<T>;
}

/// The half that one side of a gathering has not.
impl<T> Sends<T> for () {
    fn send(&mut self, _: T) {
        unreachable!("it only receives")
    }
    fn try_send(&mut self, _: &mut Option<T>) -> bool {
        unreachable!("it only receives")
    }
}

impl<T> Receives<T> for () {
    fn receive(&mut self) -> T {
        unreachable!("it only sends")
    }
    fn try_receive(&mut self) -> Option<T> {
        unreachable!("it only sends")
    }
    fn receive_within(&mut self, _: Duration) -> Option<T> {
        unreachable!("it only sends")
    }
}
