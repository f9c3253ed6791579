// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP over the loopback device with busy polling, where the kernel has something to poll.

use super::busy_poll::{self, KERNEL, LIMITS, SOURCES, polling};
use super::descriptor::{DescriptorLink, Descriptors, Ends};
use super::socket::tcp_pair;
use super::{Carries, Explanation, Mechanism, OpenError, Unavailable};

pub(crate) struct TcpBusyPoll;

impl Descriptors for TcpBusyPoll {
    const SOCKET: bool = true;
    fn open() -> Result<Ends, OpenError> {
        tcp_pair().and_then(polling)
    }
}

impl Mechanism for TcpBusyPoll {
    type Link = DescriptorLink<Self>;
    const NAME: &'static str = "tcp-busy-poll";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "TCP over loopback with SO_BUSY_POLL",
        how: "As tcp, with SO_BUSY_POLL set to 50 µs on the reading socket: a read that finds \
            nothing asks the device's receive queue for that long before it sleeps.",
        kernel: KERNEL,
        limits: LIMITS,
        sources: SOURCES,
    };

    fn available() -> Result<(), Unavailable> {
        busy_poll::probe(tcp_pair())
    }
}
