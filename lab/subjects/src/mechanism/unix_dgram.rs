// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Unix datagram socket: one datagram a notification.

use rustix::net::SocketType;

use super::descriptor::{DescriptorLink, Descriptors, Ends};
use super::socket::{timed_by_ppoll, unix_pair};
use super::{Carries, Explanation, Mechanism, OpenError};

pub(crate) struct UnixDgram;

impl Descriptors for UnixDgram {
    const SOCKET: bool = true;
    fn open() -> Result<Ends, OpenError> {
        unix_pair(SocketType::DGRAM)
    }
}

impl Mechanism for UnixDgram {
    type Link = DescriptorLink<Self>;
    const NAME: &'static str = "unix-dgram";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "Unix datagram socket, one-byte datagrams",
        how: "A connected pair from socketpair(2). The notifier writes one datagram of one byte, the \
              waiter blocks in read(2) for it. Each direction has a pair of its own.",
        kernel: "As unix-stream, but the receive queue holds whole datagrams and the sender waits on \
                 the receiver's queue length.",
        limits: concat!(
            "At most net.unix.max_dgram_qlen datagrams (10 by default, 512 on some systems) wait \
             unread; then the sender blocks. Reliable and ordered, unlike UDP. ",
            timed_by_ppoll!()
        ),
        sources: &["unix(7), socketpair(2)", "Linux net/unix/af_unix.c, unix_dgram_sendmsg"],
    };
}
