// SPDX-License-Identifier: MIT OR Apache-2.0
//! crossfire: one to one, and many to one.

use super::{Library, Receives, Sends};
use crossfire::{MTx, Rx, TrySendError, Tx, mpsc, spsc};
use std::time::Duration;

pub struct CrossfirePair;

pub struct CrossfireMany;

like_std!(CrossfirePair, spsc::bounded_blocking, Tx<spsc::Array<T>>, Rx<spsc::Array<T>>, Tx, TrySendError);
like_std!(CrossfireMany, mpsc::bounded_blocking, MTx<mpsc::Array<T>>, Rx<mpsc::Array<T>>, Tx, TrySendError);
