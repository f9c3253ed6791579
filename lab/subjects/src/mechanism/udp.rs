// SPDX-License-Identifier: MIT OR Apache-2.0
//! UDP over the loopback device: one datagram a notification.

use super::descriptor::{DescriptorLink, Descriptors, Ends};
use super::socket::{timed_by_ppoll, udp_pair};
use super::{Carries, Explanation, Mechanism, OpenError};

pub(crate) struct Udp;

impl Descriptors for Udp {
    const TOKEN: usize = 4;
    const NUMBERED: bool = true;
    const SOCKET: bool = true;
    fn open() -> Result<Ends, OpenError> {
        udp_pair()
    }
}

impl Mechanism for Udp {
    type Link = DescriptorLink<Self>;
    const NAME: &'static str = "udp";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const DROPS: bool = true;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "UDP over loopback, datagrams of four bytes that carry their number",
        how: "Two sockets on 127.0.0.1, each connected to the other. The notifier writes one \
            datagram of four bytes, its number, and the waiter blocks in read(2) for it. Each \
            direction has a pair of its own.",
        kernel: "As TCP over loopback without connection, ordering and acknowledgement: the \
            datagram goes through this CPU's backlog and the receive softirq into the \
            receiver's queue, and wakes the reader.",
        limits: concat!(
            "A datagram that finds the receive buffer (net.core.rmem_default) full is dropped \
             without a word. The numbers in those that come tell which: it is counted as lost, \
             and no other is taken for it. ",
            timed_by_ppoll!()
        ),
        sources: &["udp(7)", "Linux net/ipv4/udp.c; net/core/dev.c, process_backlog"],
    };
}
