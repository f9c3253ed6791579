// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of standard input: how a host hears that the user interrupts, or that its command is gone.

use std::io::{self, Read};
use std::thread::Builder;

/// Calls `act` once standard input has ended.
pub(crate) fn when_input_ends(act: impl FnOnce() + Send + 'static) {
    // Without that thread the trial cannot be cut short, and ends by itself.
    let _ = Builder::new().spawn(move || {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        act();
    });
}
