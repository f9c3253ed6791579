// SPDX-License-Identifier: MIT OR Apache-2.0
//! UDP over a veth pair: one datagram a notification, through a network device.

use super::descriptor::{DescriptorLink, Descriptors, Ends};
use super::socket::timed_by_ppoll;
use super::veth;
use super::{Carries, Explanation, Mechanism, OpenError};

pub(crate) struct UdpVeth;

impl Descriptors for UdpVeth {
    const TOKEN: usize = 4;
    const NUMBERED: bool = true;
    const SOCKET: bool = true;
    fn open() -> Result<Ends, OpenError> {
        veth::udp_pair()
    }
}

/// What all limits of what travels between two namespaces begin with.
macro_rules! of_a_pair {
    () => {
        "Needs CAP_SYS_ADMIN for the namespaces and CAP_NET_ADMIN for the pair. "
    };
}
pub(super) use of_a_pair;

impl Mechanism for UdpVeth {
    type Link = DescriptorLink<Self>;
    const NAME: &'static str = "udp-veth";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const DROPS: bool = true;
    const DESCRIPTOR: bool = true;
    const USUAL: bool = false;

    const EXPLANATION: Explanation = Explanation {
        summary: "UDP over a veth pair between two network namespaces",
        how: "As udp, between two namespaces that a veth pair joins; both are made for the \
            link and go with its sockets. The notifier writes one datagram of four bytes, its \
            number, and the waiter blocks in read(2) for it.",
        kernel: "The sending end puts the packet into the receiving end's ring and schedules that \
            end's NAPI instance, which takes it out in the receive softirq of the notifier's CPU, \
            gives it to UDP and wakes the reader. This is so because the receiving end has GRO on \
            and the sending end TSO off; else it would be the CPU's backlog, as on loopback.",
        limits: concat!(
            of_a_pair!(),
            "A datagram that finds the receive buffer (net.core.rmem_default) or the ring of \
             256 packets full is dropped without a word, and counted as lost by its number. ",
            timed_by_ppoll!()
        ),
        sources: &[
            "veth(4), udp(7), network_namespaces(7)",
            "Linux drivers/net/veth.c, veth_xmit and veth_poll",
        ],
    };
}
