// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the busy-polling mechanisms share: the time, the socket
//! option, and the proof that the kernel acts on it.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use super::descriptor::{Ends, readable};
use super::socket::timed_by_ppoll;
use super::{OpenError, Unavailable};

/// How long a read polls its device queue before it sleeps, microseconds: the value the kernel's
/// documentation recommends for `net.core.busy_read` (Documentation/admin-guide/sysctl/net.rst).
pub(super) const POLL_US: libc::c_int = 50;

/// What the kernel does with it.
pub(super) const KERNEL: &str = "The socket remembers the NAPI instance its last packet came from \
    and polls that one. Loopback has none: its packets pass through the per-CPU backlog, which has \
    no NAPI number, so that the option is accepted, nothing is polled, and the read sleeps at once.";

pub(super) const LIMITS: &str = concat!(
    "Listed as unavailable where the probe (one packet, then SO_INCOMING_NAPI_ID) finds no queue \
     to poll. Polling from user space is `--wait spin` with the mechanism without busy polling. \
     Needs CAP_NET_ADMIN or a raised net.core.busy_read. ",
    timed_by_ppoll!()
);

pub(super) const SOURCES: &[&str] = &[
    "socket(7), SO_BUSY_POLL and SO_INCOMING_NAPI_ID",
    "Linux include/net/busy_poll.h, sk_busy_loop; net/core/dev.c, process_backlog",
    "Linux Documentation/networking/napi.rst, busy polling",
];

/// Turns busy polling on for the reading end.
pub(super) fn polling(ends: Ends) -> Result<Ends, OpenError> {
    // SAFETY: the value is an int that lives through the call, and its size is given.
    // JUSTIFICATION: rustix has no SO_BUSY_POLL.
    let refused = unsafe {
        libc::setsockopt(
            ends.read.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BUSY_POLL,
            std::ptr::from_ref(&POLL_US).cast(),
            size_of_val(&POLL_US) as libc::socklen_t,
        )
    };
    if refused == 0 {
        return Ok(ends);
    }
    Err(OpenError::with_cure(
        "setsockopt(SO_BUSY_POLL)",
        std::io::Error::last_os_error(),
        "it needs CAP_NET_ADMIN, or net.core.busy_read set to 50 or more",
    ))
}

/// Whether a read on `ends` would poll a device queue.
///
/// The option alone proves nothing: it is accepted on every socket. The kernel polls the queue
/// (NAPI instance) through which the socket's last packet came, and tells its number; without one,
/// busy polling returns at once and the read sleeps.
pub(super) fn probe(ends: Result<Ends, OpenError>) -> Result<(), Unavailable> {
    if has_queue(&polling(ends?)?)? {
        return Ok(());
    }
    Err(Unavailable::because(
        "the loopback device has no queue to poll: SO_BUSY_POLL is accepted, but packets arrive \
         through the CPU's backlog (SO_INCOMING_NAPI_ID is 0) and the read sleeps as without it; \
         to poll from user space use `--wait spin` on the mechanism without busy polling",
    ))
}

/// Whether what comes over `ends` comes through a queue that can be polled. Sends a packet.
pub(super) fn has_queue(ends: &Ends) -> Result<bool, OpenError> {
    rustix::io::write(&ends.write, &[1]).map_err(OpenError::of("write"))?;
    let arrived = readable(&ends.read, Duration::from_secs(1))
        .map_err(|fault| OpenError::call(fault.call, fault.cause))?;
    let queue = incoming_queue(&ends.read).map_err(OpenError::of("getsockopt(SO_INCOMING_NAPI_ID)"))?;
    Ok(arrived && queue != 0)
}

/// The number of the device queue through which the last packet came; 0 if none.
fn incoming_queue(socket: &OwnedFd) -> std::io::Result<libc::c_uint> {
    let mut queue: libc::c_uint = 0;
    let mut size = size_of_val(&queue) as libc::socklen_t;
    // SAFETY: `queue` and `size` are ours and `size` tells how large `queue` is.
    // JUSTIFICATION: rustix has no SO_INCOMING_NAPI_ID.
    let refused = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_INCOMING_NAPI_ID,
            (&raw mut queue).cast(),
            &raw mut size,
        )
    };
    if refused == 0 { Ok(queue) } else { Err(std::io::Error::last_os_error()) }
}
