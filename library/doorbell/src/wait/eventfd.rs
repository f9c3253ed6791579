// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sleeping on an eventfd that only this waiter takes tokens from.

use super::{Asleep, MADE, Wait, WaitEntry, after_signal, interruptible, sleep_by, woken};
use crate::bell_state::BellState;
use crate::deadline::Deadline;
use crate::error::WaitError;
use doorbell_core::wake::{Sleep, Slept, Waiter, WaiterSlot};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::cell::Cell;
use std::io::IoSliceMut;

/// Sleeps in `poll` on one of the bell's eventfds, of which it holds
/// a waiter slot from its first wait on.
///
/// A hostile peer cannot make it wait longer than a ring or the deadline,
/// but on kernels that know no `preadv2` with `RWF_NOWAIT` for eventfds
/// (gVisor, qemu's user mode): there trust those you wait for by eventfds.
///
/// To wait in an event loop instead, see [`Bell::into_fd`](crate::Bell::into_fd).
#[derive(Clone, Copy, Debug, Default)]
pub struct Eventfd;

impl Wait for Eventfd {
    const NAME: &'static str = "eventfd";

    #[inline]
    fn wait(
        &mut self,
        entries: &mut [WaitEntry<'_>],
        mut ready: impl FnMut() -> bool,
        deadline: Option<Deadline>,
    ) -> Result<bool, WaitError> {
        if ready() {
            return Ok(true);
        }
        sleep(entries, &mut [], ready, deadline)
    }
}

/// Sleeps until `ready`, by the protocol, or until one of `files` is ready too.
pub(crate) fn sleep(
    entries: &mut [WaitEntry<'_>],
    files: &mut [PollFd<'_>],
    mut ready: impl FnMut() -> bool,
    deadline: Option<Deadline>,
) -> Result<bool, WaitError> {
    for entry in entries.iter_mut() {
        entry.listener.slots.take_eventfd()?;
    }
    let file_is_ready = Cell::new(false);
    let sleeper = Sleeper { entries, files, file_is_ready: &file_is_ready, deadline };
    sleep_by(entries, slot, sleeper, || file_is_ready.get() || ready())
}

fn slot(entry: &WaitEntry<'_>) -> WaiterSlot {
    held(entry).0
}

fn held(entry: &WaitEntry<'_>) -> (WaiterSlot, usize) {
    entry.listener.slots.eventfd().expect("taken before the wait began")
}

struct Sleeper<'a, 'b, 'c> {
    entries: &'a [WaitEntry<'b>],
    files: &'a mut [PollFd<'c>],
    file_is_ready: &'a Cell<bool>,
    deadline: Option<Deadline>,
}

impl Sleep for Sleeper<'_, '_, '_> {
    type Error = WaitError;

    fn consume(&mut self, index: usize) -> Result<(), WaitError> {
        let entry = &self.entries[index];
        consume_token(entry.state, held(entry).1)
    }

    fn barrier(&mut self, index: usize) -> Result<(), WaitError> {
        self.entries[index].state.barrier()
    }

    fn sleep(&mut self, _: &[Waiter<'_>]) -> Result<Slept, WaitError> {
        let _asleep = Asleep::at(self.entries)?;
        let timeout = self.deadline.as_ref().map(Deadline::remaining);
        let mut ended = false;
        let polled = if let ([entry], []) = (self.entries, &*self.files) {
            let mut own = [until_readable(entry)];
            poll(&mut own, timeout.as_ref()).inspect(|_| ended = has_ended(&own[0]))
        } else {
            let mut all: Vec<_> = self.files.to_vec();
            all.extend(self.entries.iter().map(until_readable));
            poll(&mut all, timeout.as_ref()).inspect(|_| {
                let (files, own) = all.split_at(self.files.len());
                self.file_is_ready.set(files.iter().any(|file| !file.revents().is_empty()));
                ended = own.iter().any(has_ended);
            })
        };
        match polled {
            Ok(0) => Ok(Slept::TimedOut),
            Ok(_) if ended => Err(WaitError::HungUp),
            Ok(_) => Ok(woken(self.deadline)),
            Err(Errno::INTR) => after_signal(interruptible(self.entries)),
            Err(errno) => Err(WaitError::Os { call: "poll", errno }),
        }
    }
}

/// Nobody can wake by it any more: a vector of user interrupts whose
/// maker is gone. An eventfd never says so.
fn has_ended(file: &PollFd<'_>) -> bool {
    file.revents() & (PollFlags::IN | PollFlags::HUP) == PollFlags::HUP
}

fn until_readable<'a>(entry: &'a WaitEntry<'_>) -> PollFd<'a> {
    PollFd::new(entry.state.eventfd(held(entry).1).expect(MADE), PollFlags::IN)
}

/// Takes whatever tokens eventfd `index` of the bell holds. Never blocks.
fn consume_token(state: &BellState, index: usize) -> Result<(), WaitError> {
    let eventfd = state.eventfd(index).expect(MADE);
    let mut count = [0; 8];
    let consumed = if state.mapping().descriptor().is_none() {
        // Never left this process and its children.
        rustix::io::read(eventfd, &mut count)
    } else {
        // A peer shares the file and with it the flag O_NONBLOCK. RWF_NOWAIT is ours alone.
        const AT_NO_OFFSET: u64 = u64::MAX;
        match preadv2(eventfd, &mut [IoSliceMut::new(&mut count)], AT_NO_OFFSET, ReadWriteFlags::NOWAIT) {
            // Kernels that are not Linux (gVisor, qemu's user mode), and filters. All that is left there is
            // to set the flag anew before each read: a hostile peer that clears it in between,
            // and has taken the token, makes this read wait.
            Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL | Errno::PERM) => {
                rustix::fs::fcntl_setfl(eventfd, rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NONBLOCK)
                    .and_then(|()| rustix::io::read(eventfd, &mut count))
            }
            consumed => consumed,
        }
    };
    match consumed {
        Ok(_) | Err(Errno::AGAIN) => Ok(()),
        Err(errno) => Err(WaitError::Os { call: "read(eventfd)", errno }),
    }
}

/// The sleeping is done elsewhere: only its token is taken here.
pub(crate) struct Token<'a> {
    pub(crate) state: &'a BellState,
    pub(crate) index: usize,
}

impl Sleep for Token<'_> {
    type Error = WaitError;

    fn consume(&mut self, _: usize) -> Result<(), WaitError> {
        consume_token(self.state, self.index)
    }

    fn barrier(&mut self, _: usize) -> Result<(), WaitError> {
        self.state.barrier()
    }

    fn sleep(&mut self, _: &[Waiter<'_>]) -> Result<Slept, WaitError> {
        Ok(Slept::Woken)
    }
}
