// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sleeping on an eventfd that only this waiter takes tokens from.

use super::{MADE, Wait, WaitEntry, after_signal, interruptible, with_waiters, woken};
use crate::bell_state::BellState;
use crate::deadline::Deadline;
use crate::error::WaitError;
use doorbell_core::wake::{Sleep, Slept, Waiter, WaiterSlot, wait_until};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::io::IoSliceMut;

/// Sleeps in `poll` on one of the bell's eventfds, of which it holds a waiter slot from its first wait on.
///
/// A hostile peer cannot make it wait longer than a ring or the deadline, but on kernels that know no `preadv2` with `RWF_NOWAIT`
/// for eventfds (gVisor, qemu's user mode): there trust those you wait for by eventfds.
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
        for entry in entries.iter_mut() {
            entry.listener.slots.take_eventfd()?;
        }
        let waited = with_waiters(entries, slot, |waiters| {
            wait_until(waiters, &mut Sleeper { entries, deadline }, ready)
        })?;
        for entry in entries {
            entry.listener.counters.slept(waited);
        }
        Ok(waited.ready)
    }
}

fn slot(entry: &WaitEntry<'_>) -> WaiterSlot {
    held(entry).0
}

fn held(entry: &WaitEntry<'_>) -> (WaiterSlot, usize) {
    entry.listener.slots.eventfd().expect("taken before the wait began")
}

struct Sleeper<'a, 'b> {
    entries: &'a [WaitEntry<'b>],
    deadline: Option<Deadline>,
}

impl Sleep for Sleeper<'_, '_> {
    type Error = WaitError;

    fn consume(&mut self, index: usize) -> Result<(), WaitError> {
        let entry = &self.entries[index];
        consume_token(entry.state, held(entry).1)
    }

    fn barrier(&mut self, index: usize) -> Result<(), WaitError> {
        self.entries[index].state.barrier()
    }

    fn sleep(&mut self, _: &[Waiter<'_>]) -> Result<Slept, WaitError> {
        let timeout = self.deadline.as_ref().map(Deadline::remaining);
        let polled = if let [entry] = self.entries {
            poll(&mut [until_readable(entry)], timeout.as_ref())
        } else {
            poll(&mut self.entries.iter().map(until_readable).collect::<Vec<_>>(), timeout.as_ref())
        };
        match polled {
            Ok(0) => Ok(Slept::TimedOut),
            Ok(_) => Ok(woken(self.deadline)),
            Err(Errno::INTR) => after_signal(interruptible(self.entries)),
            Err(errno) => Err(WaitError::Os { call: "poll", errno }),
        }
    }
}

fn until_readable<'a>(entry: &'a WaitEntry<'_>) -> PollFd<'a> {
    PollFd::new(entry.state.eventfd(held(entry).1).expect(MADE), PollFlags::IN)
}

/// Takes whatever tokens eventfd `index` of the bell holds. Never blocks.
pub(crate) fn consume_token(state: &BellState, index: usize) -> Result<(), WaitError> {
    let eventfd = state.eventfd(index).expect(MADE);
    let mut count = [0; 8];
    let consumed = if state.mapping().descriptor().is_none() {
        // Never left this process and its children.
        rustix::io::read(eventfd, &mut count)
    } else {
        // A peer shares the file and with it the flag O_NONBLOCK. RWF_NOWAIT is ours alone.
        const AT_NO_OFFSET: u64 = u64::MAX;
        match preadv2(eventfd, &mut [IoSliceMut::new(&mut count)], AT_NO_OFFSET, ReadWriteFlags::NOWAIT) {
            // Kernels that are not Linux (gVisor, qemu's user mode), and filters. All that is left there is to set the flag anew
            // before each read: a hostile peer that clears it in between, and has taken the token, makes this read wait.
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
