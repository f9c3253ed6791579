// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP over the loopback device: one byte a notification.

use super::descriptor::{DescriptorLink, Descriptors, Ends};
use super::socket::{tcp_pair, timed_by_ppoll};
use super::{Carries, Explanation, Mechanism, OpenError};

pub(crate) struct Tcp;

impl Descriptors for Tcp {
    const SOCKET: bool = true;
    fn open() -> Result<Ends, OpenError> {
        tcp_pair()
    }
}

impl Mechanism for Tcp {
    type Link = DescriptorLink<Self>;
    const NAME: &'static str = "tcp";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "TCP over loopback, one byte a notification, TCP_NODELAY",
        how: "A connection over 127.0.0.1 with TCP_NODELAY. The notifier writes one byte, the \
            waiter blocks in read(2) for one byte. Each direction has a connection of its own, \
            so that no answer carries the acknowledgement.",
        kernel: "Write: build a segment, pass it down through IP to the loopback device, which \
            queues it on this CPU's backlog; the receive softirq runs it up through IP and \
            TCP, usually before the write returns, and wakes the reader. Acknowledgements go \
            the same way back.",
        limits: concat!("The notifier pays for the receiving stack as well. ", timed_by_ppoll!()),
        sources: &[
            "tcp(7), ip(7)",
            "Linux drivers/net/loopback.c; net/core/dev.c, process_backlog",
            "sockperf, lmbench lat_tcp: this protocol, both ways over one connection",
        ],
    };
}
