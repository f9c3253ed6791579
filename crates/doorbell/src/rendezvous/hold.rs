// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connection to a peer, and who keeps it.

use super::{RendezvousError, Segment, os};
use crate::process::Process;
use crate::watch::{Watch, watch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::Shutdown;
use std::sync::{Arc, OnceLock, Weak};

/// The connection to a peer. Kept by the connection, by every end of a channel that was taken over it, and by every waiter
/// that holds a waiter slot; the last of them hangs up. So nobody takes an end for left, or a waiter slot for free, that is still held.
#[derive(Debug)]
pub(crate) struct ConnectionHold {
    segment: Arc<Segment>,
    /// The socket, or the FIFO of one who joined by name.
    file: OwnedFd,
    watch: Watch,
    /// A forked child has a copy, and its parent goes on.
    process: Process,
    /// Who joined a segment and shares it further hangs up on the one it has it from last.
    _under: Option<Arc<ConnectionHold>>,
}

impl ConnectionHold {
    /// Runs `on_death` when the other end of `file` hangs up, unless this side did so before.
    pub(super) fn new(
        segment: Arc<Segment>,
        file: OwnedFd,
        under: Option<Arc<Self>>,
        on_death: impl FnOnce() + Send + 'static,
    ) -> Result<Arc<Self>, RendezvousError> {
        let watch = watch(file.as_fd(), Box::new(on_death)).map_err(os("epoll_ctl"))?;
        let process = Process::current();
        Ok(Arc::new(Self { segment, file, watch, process, _under: under }))
    }

    pub(super) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Was it made by this process, and not by one that this was forked from?
    fn is_ours(&self) -> bool {
        self.process.is_current()
    }
}

impl Drop for ConnectionHold {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        match self.watch.end(self.file.as_fd()) {
            None => {}
            // The watcher had not come to it yet, and will not any more.
            Some(on_death) if has_hung_up(self.file.as_fd()) => on_death(),
            Some(_) => self.segment.let_go(),
        }
        // Forked children may hold copies of the socket. Of a FIFO nobody watches our end: ENOTSOCK.
        let _ = rustix::net::shutdown(&self.file, Shutdown::Both);
    }
}

fn has_hung_up(file: BorrowedFd<'_>) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // HUP is reported unasked.
    let mut polled = [PollFd::from_borrowed_fd(file, PollFlags::RDHUP)];
    matches!(poll(&mut polled, Some(&now)), Ok(1))
}

/// The maker of the segment takes this process for gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HungUp;

/// The hold to whom this process has a segment from, if it did not make it.
#[derive(Debug, Default)]
pub(crate) struct Origin(OnceLock<Weak<ConnectionHold>>);

impl Origin {
    /// The segment was joined over `hold`. The first time counts.
    pub(super) fn set(&self, hold: &Arc<ConnectionHold>) {
        let _ = self.0.set(Arc::downgrade(hold));
    }

    /// What has to be kept for as long as anything is held by this process's number on the segment. Fails if we joined it and
    /// have hung up since, or are the forked child of the process that joined: to the segment's maker what we hold would be
    /// a dead process's, to be given to others.
    pub(crate) fn hold(&self) -> Result<Option<Arc<ConnectionHold>>, HungUp> {
        let Some(hold) = self.0.get() else { return Ok(None) };
        Ok(Some(hold.upgrade().filter(|hold| hold.is_ours()).ok_or(HungUp)?))
    }
}

/// A segment, and what has to be kept for as long as an end of one of its lanes.
#[derive(Clone, Debug)]
pub(crate) struct AttachContext<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) hold: Option<Arc<ConnectionHold>>,
}

impl Segment {
    /// Fails as [`Origin::hold`] does.
    pub(crate) fn attach_context(&self) -> Result<AttachContext<'_>, HungUp> {
        Ok(AttachContext { segment: self, hold: self.origin.hold()? })
    }
}
