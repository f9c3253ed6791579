// SPDX-License-Identifier: MIT OR Apache-2.0
//! This project's channel: an eight-byte message, received by a
//! waiter that spins as long as it pays.

use super::library::ChannelLink;
use super::{Carries, Explanation, Mechanism, Notifiers, Waits};

pub(crate) struct Channel;

impl Mechanism for Channel {
    type Link = ChannelLink<doorbell::wait::Adaptive>;
    const NAME: &'static str = "channel";
    const WAITS: Waits = Waits::Adapts;
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const NOTIFIERS: Notifiers = Notifiers::One;

    const EXPLANATION: Explanation = Explanation {
        summary: "this project's channel: an eight-byte message in shared memory",
        how: "The notifier writes a message into a ring and looks whether the receiver sleeps; \
            only then does it make a system call. The receiver waits as bell-adaptive does.",
        kernel: "Nothing while the receiver spins; else as the futex.",
        limits: "Every message is kept; a notifier that is 64 KiB ahead waits for room.",
        sources: &[
            "library/core/src/wake.rs: the protocol and the argument",
            "book/bell.md, book/channels.md",
        ],
    };
}
