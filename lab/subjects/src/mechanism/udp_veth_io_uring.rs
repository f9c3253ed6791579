// SPDX-License-Identifier: MIT OR Apache-2.0
//! UDP over a veth pair, received through io_uring.

use super::udp_veth::{UdpVeth, of_a_pair};
use super::uring_read::{ReadByRing, ReadLink};
use super::{Carries, Explanation, Mechanism};

pub(crate) struct UdpVethIoUring;

impl ReadByRing for UdpVeth {}

impl Mechanism for UdpVethIoUring {
    type Link = ReadLink<UdpVeth>;
    const NAME: &'static str = "udp-veth-io-uring";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const DROPS: bool = true;
    const USUAL: bool = false;

    const EXPLANATION: Explanation = Explanation {
        summary: "UDP over a veth pair, read by an operation of io_uring",
        how: "As udp-veth. The waiter submits IORING_OP_READ on its socket and sleeps in \
            io_uring_enter(2) until it is completed, in one call for both.",
        kernel: "The read finds nothing and leaves an entry on the socket's wait queue. The \
            packet's way through the notifier's softirq ends there: task work is queued for \
            the waiter, which wakes, does the read itself and posts the completion.",
        limits: concat!(
            of_a_pair!(),
            "Drops as udp-veth. Rings are closed to many containers and can be disabled for \
             all (kernel.io_uring_disabled). The timed wait is io_uring_enter's own; a look \
             submits the read, after which looking is free."
        ),
        sources: &["io_uring_enter(2), veth(4)", "Linux io_uring/poll.c, io_arm_poll_handler"],
    };
}
