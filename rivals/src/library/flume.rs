// SPDX-License-Identifier: MIT OR Apache-2.0
//! flume.

use super::{Library, Receives, Sends};
use flume::{Receiver, Sender, TrySendError, bounded};
use std::time::Duration;

pub struct Flume;

like_std!(Flume, bounded, Sender<T>, Receiver<T>, Sender, TrySendError);
