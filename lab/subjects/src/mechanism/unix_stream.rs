// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Unix stream socket: one byte a notification.

use rustix::net::SocketType;

use super::descriptor::{DescriptorLink, Descriptors, Ends};
use super::socket::{timed_by_ppoll, unix_pair};
use super::{Carries, Explanation, Mechanism, OpenError};

pub(crate) struct UnixStream;

impl Descriptors for UnixStream {
    const SOCKET: bool = true;
    fn open() -> Result<Ends, OpenError> {
        unix_pair(SocketType::STREAM)
    }
}

impl Mechanism for UnixStream {
    type Link = DescriptorLink<Self>;
    const NAME: &'static str = "unix-stream";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "Unix stream socket, one byte a notification",
        how: "A connected pair from socketpair(2). The notifier writes one byte, the waiter blocks in \
              read(2) for one byte. Each direction has a pair of its own.",
        kernel: "Write: allocate a socket buffer, charge it to the sender, append it to the peer's \
                 receive queue, call the peer's data-ready callback, which wakes it. Read: sleep while \
                 the queue is empty, copy, free the buffer.",
        limits: concat!(
            "The sender blocks once its send buffer (net.core.wmem_default) is full of buffers \
             not yet read: some hundred single bytes, since each is charged with its overhead. ",
            timed_by_ppoll!()
        ),
        sources: &["unix(7), socketpair(2)", "Linux net/unix/af_unix.c, unix_stream_sendmsg"],
    };
}
