// SPDX-License-Identifier: MIT OR Apache-2.0
//! The standard library's channel.

use super::{Library, Receives, Sends};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

pub struct StdMpsc;

like_std!(StdMpsc, sync_channel, SyncSender<T>, Receiver<T>, SyncSender, TrySendError);
