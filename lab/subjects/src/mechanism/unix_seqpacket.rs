// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Unix socket of sequenced packets: one packet a notification.

use rustix::net::SocketType;

use super::descriptor::{DescriptorLink, Descriptors, Ends};
use super::socket::{timed_by_ppoll, unix_pair};
use super::{Carries, Explanation, Mechanism, OpenError};

pub(crate) struct UnixSeqpacket;

impl Descriptors for UnixSeqpacket {
    const SOCKET: bool = true;
    fn open() -> Result<Ends, OpenError> {
        unix_pair(SocketType::SEQPACKET)
    }
}

impl Mechanism for UnixSeqpacket {
    type Link = DescriptorLink<Self>;
    const NAME: &'static str = "unix-seqpacket";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "Unix seqpacket socket, one-byte packets",
        how: "A connected pair from socketpair(2). The notifier writes one packet of one byte, the \
              waiter blocks in read(2) for it. Each direction has a pair of its own.",
        kernel: "The code of unix-dgram with the connection checks of unix-stream: packets keep their \
                 bounds and a closed peer is noticed.",
        limits: concat!(
            "At most net.unix.max_dgram_qlen packets (10 by default, 512 on some systems) wait \
             unread; then the sender blocks. ",
            timed_by_ppoll!()
        ),
        sources: &["unix(7), socketpair(2)", "Linux net/unix/af_unix.c, unix_seqpacket_sendmsg"],
    };
}
