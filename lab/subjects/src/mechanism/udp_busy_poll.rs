// SPDX-License-Identifier: MIT OR Apache-2.0
//! UDP over the loopback device with busy polling, where the kernel has something to poll.

use super::busy_poll::{self, KERNEL, LIMITS, SOURCES, polling};
use super::descriptor::{DescriptorLink, Descriptors, Ends};
use super::socket::udp_pair;
use super::{Carries, Explanation, Mechanism, OpenError, Unavailable};

pub(crate) struct UdpBusyPoll;

impl Descriptors for UdpBusyPoll {
    const TOKEN: usize = 4;
    const NUMBERED: bool = true;
    const SOCKET: bool = true;
    fn open() -> Result<Ends, OpenError> {
        udp_pair().and_then(polling)
    }
}

impl Mechanism for UdpBusyPoll {
    type Link = DescriptorLink<Self>;
    const NAME: &'static str = "udp-busy-poll";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const DROPS: bool = true;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "UDP over loopback with SO_BUSY_POLL",
        how: "As udp, with SO_BUSY_POLL set to 50 µs on the reading socket: a read that finds \
            nothing asks the device's receive queue for that long before it sleeps.",
        kernel: KERNEL,
        limits: LIMITS,
        sources: SOURCES,
    };

    fn available() -> Result<(), Unavailable> {
        busy_poll::probe(udp_pair())
    }
}
