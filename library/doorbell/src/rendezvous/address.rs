// SPDX-License-Identifier: MIT OR Apache-2.0
//! The address of the socket at a path.

use super::{RendezvousError, os};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;
use std::path::Path;

/// The longest path of a socket: `sun_path` of `sockaddr_un`, less
/// the zero byte after it (unix(7)).
pub(crate) const LONGEST_PATH: usize = 107;

/// # Errors
/// [`RendezvousError::PathTooLong`], [`RendezvousError::BadName`].
pub(crate) fn address(path: &Path) -> Result<SocketAddrUnix, RendezvousError> {
    let bytes = path.as_os_str().as_encoded_bytes();
    // A line feed would be another line of the kernel's list of sockets.
    if bytes.is_empty() || bytes.iter().any(u8::is_ascii_control) {
        return Err(RendezvousError::BadName { name: path.to_owned() });
    }
    SocketAddrUnix::new(path).map_err(|errno| match errno {
        Errno::NAMETOOLONG => {
            RendezvousError::PathTooLong { path: path.to_owned(), length: bytes.len(), longest: LONGEST_PATH }
        }
        errno => os("sockaddr_un")(errno),
    })
}
