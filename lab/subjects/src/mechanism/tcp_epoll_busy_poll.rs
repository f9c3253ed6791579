// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP over the loopback device, waited for in an epoll set that
//! polls device queues, where there is one to poll.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::EventFlags;

use super::busy_poll;
use super::descriptor::{Ends, Writer, again, take_token};
use super::eventfd_epoll::EpollSet;
use super::socket::tcp_pair;
use super::tcp::Tcp;
use super::{Explanation, Fault, Link, Mechanism, OpenError, Site, Unavailable, Waiter, Woken};

/// As tcp, in an epoll set with busy polling.
#[derive(Debug)]
pub struct TcpEpollBusyPoll;

#[derive(Debug)]
pub struct EpollLink(Ends);

/// The end that waits in the set.
#[derive(Debug)]
pub struct EpollWaiter {
    set: EpollSet,
    socket: OwnedFd,
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

/// The set polls for 50 µs before it sleeps, eight packets at a time, as
/// Documentation/networking/napi.rst has it.
fn polling(set: EpollSet) -> Result<EpollSet, OpenError> {
    let parameters = Parameters { busy_poll_usecs: 50, busy_poll_budget: 8, prefer_busy_poll: 0, pad: 0 };
    // SAFETY: the structure is the one the call takes, and lives through it.
    // JUSTIFICATION: rustix has no EPIOCSPARAMS.
    let refused =
        unsafe { libc::ioctl(set.descriptor().as_raw_fd(), EPIOCSPARAMS as _, &raw const parameters) };
    if refused == 0 {
        return Ok(set);
    }
    Err(OpenError::with_cure("ioctl(EPIOCSPARAMS)", std::io::Error::last_os_error(), "it needs Linux 6.9"))
}

impl Mechanism for TcpEpollBusyPoll {
    type Link = EpollLink;
    const NAME: &'static str = "tcp-epoll-busy-poll";
    const COALESCES: bool = false;
    const DESCRIPTOR: bool = true;

    fn explanation() -> Explanation {
        Explanation {
            summary: "TCP over loopback in an epoll set with busy polling (EPIOCSPARAMS)",
            how: "As tcp; the waiter sleeps in epoll_wait(2) on a set that was told to poll device \
                queues for 50 µs first, and then reads.",
            kernel: busy_poll::KERNEL,
            limits: busy_poll::LIMITS,
            sources: &["ioctl_eventpoll(2), EPIOCSPARAMS (Linux 6.9)", "Linux fs/eventpoll.c, ep_busy_loop"],
        }
    }

    fn available() -> Result<(), Unavailable> {
        busy_poll::probe(tcp_pair())?;
        let because = |error: OpenError| Unavailable::because(error.to_string());
        let ends = tcp_pair().map_err(because)?;
        EpollSet::of(&ends.read, EventFlags::IN).and_then(polling).map(drop).map_err(because)
    }
}

impl Link for EpollLink {
    type Notifier = Writer<Tcp>;
    type Waiter = EpollWaiter;
    fn open(_: &Site) -> Result<Self, OpenError> {
        tcp_pair().map(Self)
    }
    fn waiter(&self) -> Result<EpollWaiter, OpenError> {
        let socket = again(&self.0.read)?;
        Ok(EpollWaiter { set: EpollSet::of(&socket, EventFlags::IN).and_then(polling)?, socket })
    }
    fn notifier(&self) -> Result<Writer<Tcp>, OpenError> {
        again(&self.0.write).map(Writer::new)
    }
}

impl EpollWaiter {
    fn wait_then_read(&mut self, timeout: Option<Duration>) -> Result<bool, Fault> {
        let ready = self.set.wait(timeout)?;
        if ready {
            take_token::<Tcp>(&self.socket)?;
        }
        Ok(ready)
    }
}

impl Waiter for EpollWaiter {
    fn wait(&mut self) -> Result<(), Fault> {
        self.wait_then_read(None).map(drop)
    }
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        self.wait_then_read(Some(timeout)).map(Woken::when)
    }
    fn poll(&mut self) -> Result<bool, Fault> {
        self.wait_then_read(Some(Duration::ZERO))
    }
}
