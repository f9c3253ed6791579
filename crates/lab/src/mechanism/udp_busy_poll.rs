// SPDX-License-Identifier: MIT OR Apache-2.0
//! UDP over the loopback device with busy polling, where the kernel has something to poll.

use super::busy_poll::{self, polling};
use super::descriptor::{DescriptorLine, Descriptors, Ends};
use super::socket::{timed_by_ppoll, udp_pair};
use super::{Explanation, Host, Mechanism, Memory, OpenError, Site, Unavailable};

/// As udp, with SO_BUSY_POLL on the reading socket.
#[derive(Debug)]
pub struct UdpBusyPoll;

impl Descriptors for UdpBusyPoll {
    const SOCKET: bool = true;
    fn open(_: &Site) -> Result<Ends, OpenError> {
        udp_pair().and_then(polling)
    }
}

impl Mechanism for UdpBusyPoll {
    type Line = DescriptorLine<Self>;
    const NAME: &'static str = "udp-busy-poll";
    const MEMORY: Memory = Memory::Counts;
    const DESCRIPTOR: bool = true;

    fn explanation() -> Explanation {
        Explanation {
            summary: "UDP over loopback with SO_BUSY_POLL",
            how: "As udp, with SO_BUSY_POLL set to 50 µs on the reading socket: a read that finds nothing asks the \
                  device's receive queue for that long before it sleeps.",
            kernel: "The socket remembers the NAPI instance its last packet came from and polls that one. Loopback has \
                     none: its packets pass through the per-CPU backlog, which has no NAPI number, so that the option \
                     is accepted, nothing is polled, and the read sleeps at once.",
            limits: concat!(
                "Listed as unavailable where the probe (one packet, then SO_INCOMING_NAPI_ID) finds no queue to poll, \
                 which is so on every loopback device to date. Polling from user space is `udp --wait spin`. Needs \
                 CAP_NET_ADMIN or a raised net.core.busy_read. ",
                timed_by_ppoll!()
            ),
            sources: &[
                "socket(7), SO_BUSY_POLL and SO_INCOMING_NAPI_ID",
                "Linux include/net/busy_poll.h, sk_busy_loop; net/core/dev.c, process_backlog",
                "Linux Documentation/networking/napi.rst, busy polling",
            ],
        }
    }

    fn available(_: &Host) -> Result<(), Unavailable> {
        busy_poll::probe(udp_pair())
    }
}
