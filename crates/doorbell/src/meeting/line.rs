// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connection to a peer, and who keeps it.

use super::{Board, MeetError, os};
use crate::process::Process;
use crate::watch::{Watch, watch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::Shutdown;
use std::sync::{Arc, OnceLock, Weak};

/// The connection to a peer. Kept by the session, by every end of a channel that was taken over it, and by every waiter
/// that holds a seat; the last of them hangs up. So nobody takes an end for left, or a seat for free, that is still held.
#[derive(Debug)]
pub(crate) struct Line {
    board: Arc<Board>,
    /// The socket, or the FIFO of one who joined by name.
    file: OwnedFd,
    watch: Watch,
    /// A forked child has a copy, and its parent goes on.
    process: Process,
    /// Who joined a board and shares it further hangs up on the one it has it from last.
    _under: Option<Arc<Line>>,
}

impl Line {
    /// Runs `on_death` when the other end of `file` hangs up, unless this side did so before.
    pub(super) fn new(
        board: Arc<Board>,
        file: OwnedFd,
        under: Option<Arc<Self>>,
        on_death: impl FnOnce() + Send + 'static,
    ) -> Result<Arc<Self>, MeetError> {
        let watch = watch(file.as_fd(), Box::new(on_death)).map_err(os("epoll_ctl"))?;
        let process = Process::current();
        Ok(Arc::new(Self { board, file, watch, process, _under: under }))
    }

    pub(super) fn board(&self) -> &Arc<Board> {
        &self.board
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Was it made by this process, and not by one that this was forked from?
    fn is_ours(&self) -> bool {
        self.process.is_current()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        match self.watch.end(self.file.as_fd()) {
            None => {}
            // The watcher had not come to it yet, and will not any more.
            Some(on_death) if has_hung_up(self.file.as_fd()) => on_death(),
            Some(_) => self.board.let_go(),
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

/// The maker of the board takes this process for gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HungUp;

/// The line to whom this process has a board from, if it did not make it.
#[derive(Debug, Default)]
pub(crate) struct Origin(OnceLock<Weak<Line>>);

impl Origin {
    /// The board was joined over `line`. The first time counts.
    pub(super) fn set(&self, line: &Arc<Line>) {
        let _ = self.0.set(Arc::downgrade(line));
    }

    /// What has to be kept for as long as anything is held by this process's number on the board. Fails if we joined it and
    /// have hung up since, or are the forked child of the process that joined: to the board's maker what we hold would be
    /// a dead process's, to be given to others.
    pub(crate) fn line(&self) -> Result<Option<Arc<Line>>, HungUp> {
        let Some(line) = self.0.get() else { return Ok(None) };
        Ok(Some(line.upgrade().filter(|line| line.is_ours()).ok_or(HungUp)?))
    }
}

/// A board, and what has to be kept for as long as an end of one of its lanes.
#[derive(Clone, Debug)]
pub(crate) struct Footing<'a> {
    pub(crate) board: &'a Board,
    pub(crate) line: Option<Arc<Line>>,
}

impl Board {
    /// Fails as [`Origin::line`] does.
    pub(crate) fn footing(&self) -> Result<Footing<'_>, HungUp> {
        Ok(Footing { board: self, line: self.origin.line()? })
    }
}
