// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP over the loopback device, waited for in an epoll set that
//! polls device queues, where there is one to poll.

use std::os::fd::{AsRawFd, OwnedFd};

use super::busy_poll;
use super::descriptor::{DescriptorLink, Descriptors, Ends};
use super::epoll::{EpollWaiter, InASet};
use super::socket::tcp_pair;
use super::{Explanation, Link, Mechanism, OpenError, Unavailable};

pub(crate) struct TcpEpollBusyPoll;

impl Descriptors for TcpEpollBusyPoll {
    fn open() -> Result<Ends, OpenError> {
        tcp_pair()
    }
}

#[repr(C)]
struct Parameters {
    busy_poll_usecs: u32,
    busy_poll_budget: u16,
    prefer_busy_poll: u8,
    pad: u8,
}

/// `_IOW(0x8A, 0x01, struct epoll_params)`.
const EPIOCSPARAMS: libc::c_ulong = 0x4008_8A01;

impl InASet for TcpEpollBusyPoll {
    /// The set polls for 50 µs before it sleeps, eight packets at a time, as
    /// Documentation/networking/napi.rst has it.
    fn prepare(set: &OwnedFd) -> Result<(), OpenError> {
        let parameters = Parameters { busy_poll_usecs: 50, busy_poll_budget: 8, prefer_busy_poll: 0, pad: 0 };
        // SAFETY: the structure is the one the call takes, and lives through it.
        // JUSTIFICATION: rustix has no EPIOCSPARAMS.
        let refused = unsafe { libc::ioctl(set.as_raw_fd(), EPIOCSPARAMS as _, &raw const parameters) };
        if refused == 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        Err(OpenError::with_cure("ioctl(EPIOCSPARAMS)", error, "it needs Linux 6.9"))
    }
}

impl Mechanism for TcpEpollBusyPoll {
    type Link = DescriptorLink<Self, EpollWaiter<Self>>;
    const NAME: &'static str = "tcp-epoll-busy-poll";
    const COALESCES: bool = false;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "TCP over loopback in an epoll set with busy polling (EPIOCSPARAMS)",
        how: "As tcp; the waiter sleeps in epoll_wait(2) on a set that was told to poll device \
            queues for 50 µs first, and then reads.",
        kernel: busy_poll::KERNEL,
        limits: busy_poll::LIMITS,
        sources: &["ioctl_eventpoll(2), EPIOCSPARAMS (Linux 6.9)", "Linux fs/eventpoll.c, ep_busy_loop"],
    };

    fn available() -> Result<(), Unavailable> {
        busy_poll::probe(tcp_pair())?;
        Self::Link::available()
    }
}
