// SPDX-License-Identifier: MIT OR Apache-2.0
//! What lies at a path, held before it is opened.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// What lies at a path, held: whatever has the name later, what was looked at is what is opened.
#[derive(Debug)]
pub struct Held {
    file: File,
    /// What it is.
    pub data: Metadata,
}

impl Held {
    /// Holds what `path` leads to, through symbolic links, without opening it: opening alone
    /// rewinds a tape and waits for the other end of a FIFO.
    pub fn at(path: &Path) -> io::Result<Self> {
        Self::with(path, OFlags::PATH)
    }

    /// The same of the last name itself: a link there is not followed.
    pub fn at_name(path: &Path) -> io::Result<Self> {
        Self::with(path, OFlags::PATH | OFlags::NOFOLLOW)
    }

    #[expect(clippy::disallowed_methods, reason = "O_PATH opens nothing")]
    fn with(path: &Path, flags: OFlags) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
        let data = file.metadata()?;
        Ok(Self { file, data })
    }

    /// Opens it.
    #[expect(clippy::disallowed_methods, reason = "what it is was looked at")]
    pub fn open(&self, how: &OpenOptions) -> io::Result<File> {
        // That link leads to the file itself and not to its name (proc_pid_fd(5)).
        how.open(format!("/proc/self/fd/{}", self.file.as_raw_fd())).map_err(|cause| match cause.kind() {
            io::ErrorKind::NotFound => {
                io::Error::other("what was looked at can be opened only through /proc/self/fd: mount /proc")
            }
            _ => cause,
        })
    }
}
