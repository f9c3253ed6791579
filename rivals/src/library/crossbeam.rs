// SPDX-License-Identifier: MIT OR Apache-2.0
//! crossbeam-channel.

use super::{Library, Receives, Sends};
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use std::time::Duration;

pub struct Crossbeam;

like_std!(Crossbeam, bounded, Sender<T>, Receiver<T>, Sender, TrySendError);
