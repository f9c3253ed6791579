// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connection to a peer, and who keeps it.

use super::{Processes, RendezvousError, Segment, os};
use crate::error::HungUp;
use crate::origin::Hold;
use crate::process::Process;
use crate::watch::{Watch, watch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::Shutdown;
use std::sync::Arc;

/// The connection to a peer. Kept by the connection, by every end of a channel that was taken over
/// it, and by every waiter that holds a waiter slot; the last of them hangs up. So nobody takes an
/// end for left, or a waiter slot for free, that is still held.
#[derive(Debug)]
pub(crate) struct ConnectionHold {
    segment: Arc<Segment>,
    file: OwnedFd,
    watch: Watch,
    /// A forked child has a copy, and its parent goes on.
    process: Process,
    /// Who joined a segment and shares it further hangs up on the one it has it from last.
    _under: Option<Arc<dyn Hold>>,
}

impl ConnectionHold {
    /// Runs `on_death` when the other end of `file` hangs up, unless this side did so before.
    pub(super) fn new(
        segment: Arc<Segment>,
        file: OwnedFd,
        under: Option<Arc<dyn Hold>>,
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
}

impl Hold for ConnectionHold {
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
        // Forked children may hold copies of the socket.
        let _ = rustix::net::shutdown(&self.file, Shutdown::Both);
    }
}

fn has_hung_up(file: BorrowedFd<'_>) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // HUP is reported unasked.
    let mut polled = [PollFd::from_borrowed_fd(file, PollFlags::RDHUP)];
    matches!(poll(&mut polled, Some(&now)), Ok(1))
}

/// A segment, and what has to be kept for as long as an end of one of its lanes.
#[derive(Clone, Debug)]
pub(crate) struct AttachContext<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) hold: Option<Arc<dyn Hold>>,
    /// Where no hold tells of deaths, who does.
    pub(crate) processes: Option<Arc<Processes>>,
}

impl Segment {
    /// Fails as [`Origin::hold`](crate::origin::Origin::hold) does.
    pub(crate) fn attach_context(&self) -> Result<AttachContext<'_>, HungUp> {
        Ok(AttachContext { segment: self, hold: self.origin.hold()?, processes: self.processes.clone() })
    }
}
