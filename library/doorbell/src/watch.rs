// SPDX-License-Identifier: MIT OR Apache-2.0
//! One thread per process that hears of the peers' deaths.
//!
//! A sleeper on a futex cannot also wait for a socket to hang up. This thread does it for all of
//! them: it sleeps in epoll on the rendezvous sockets and, when one hangs up, runs what was left
//! with it. It costs nothing while everybody lives, and takes no part in ringing.

use crate::atfork_lock::ForkMutex;
use crate::descriptor;
use crate::process::Process;
use crate::thread::without_signals;
use rustix::event::epoll;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(crate) type OnDeath = Box<dyn FnOnce() + Send>;

/// The watcher of one process.
struct Watcher {
    process: Process,
    epoll: OwnedFd,
    next: ForkMutex<Watched>,
}

/// What is to be run, by number.
#[derive(Default)]
struct Watched {
    last: u64,
    on_death: HashMap<u64, OnDeath>,
    /// What the thread took out and has not run to its end.
    running: Option<u64>,
}

thread_local! {
    /// Is this the thread of a watcher?
    static WATCHES: Cell<bool> = const { Cell::new(false) };
}

static OURS: ForkMutex<Option<Arc<Watcher>>> = ForkMutex::new(None);

/// A file that is watched.
pub(crate) struct Watch {
    watcher: Arc<Watcher>,
    number: u64,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("number", &self.number).finish_non_exhaustive()
    }
}

/// Runs `on_death` when the other end of `socket` hangs up, once. If it has already, at once.
pub(crate) fn watch(socket: BorrowedFd<'_>, on_death: OnDeath) -> Result<Watch, Errno> {
    // HUP is reported unasked. Not IN: what a peer sends after the rendezvous is of no interest, and
    // would wake the thread for ever.
    watch_for(epoll::EventFlags::RDHUP, socket, on_death)
}

/// As `watch`, when the process of `pidfd` ends.
pub(crate) fn watch_exit(pidfd: BorrowedFd<'_>, on_exit: OnDeath) -> Result<Watch, Errno> {
    watch_for(epoll::EventFlags::IN, pidfd, on_exit)
}

fn watch_for(events: epoll::EventFlags, file: BorrowedFd<'_>, on_death: OnDeath) -> Result<Watch, Errno> {
    let watcher = ours()?;
    let number = {
        let mut next = watcher.next.lock();
        next.last += 1;
        let number = next.last;
        next.on_death.insert(number, on_death);
        number
    };
    // ONESHOT: what was told already would wake the thread for as long as the file is kept.
    let events = events | epoll::EventFlags::ONESHOT;
    let added = epoll::add(&watcher.epoll, file, epoll::EventData::new_u64(number), events);
    if let Err(errno) = added {
        watcher.next.lock().on_death.remove(&number);
        return Err(errno);
    }
    Ok(Watch { watcher, number })
}

impl Watch {
    /// Stops watching `file`. Gives back what was to be run, if it has not been; what is being run
    /// has ended on return, unless it is what calls this.
    pub(crate) fn end(&self, file: BorrowedFd<'_>) -> Option<OnDeath> {
        // A forked child has the same epoll, in which its parent's registration lies.
        if !self.watcher.process.is_current() {
            return None;
        }
        let on_death = loop {
            let mut next = self.watcher.next.lock();
            let on_death = next.on_death.remove(&self.number);
            if on_death.is_some() || next.running != Some(self.number) || WATCHES.get() {
                break on_death;
            }
            drop(next);
            // It frees what a dead peer held and wakes who waits: a
            // matter of microseconds, unless its thread has lost its CPU.
            std::thread::sleep(Duration::from_micros(50));
        };
        // Cannot fail while the caller holds the file; and there is nobody to tell.
        let _ = epoll::delete(&self.watcher.epoll, file);
        on_death
    }
}

/// A forked child has its parent's memory but not its thread: it gets its own.
fn ours() -> Result<Arc<Watcher>, Errno> {
    let mut ours = OURS.lock();
    let process = Process::current();
    if let Some(watcher) = ours.as_ref().filter(|watcher| watcher.process == process) {
        return Ok(Arc::clone(watcher));
    }
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).and_then(descriptor::kept)?;
    let watcher = Arc::new(Watcher { process, epoll, next: ForkMutex::new(Watched::default()) });
    let thread = Arc::clone(&watcher);
    let named = std::thread::Builder::new().name("doorbell-watch".into());
    without_signals(|| named.spawn(move || thread.run()))
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?;
    *ours = Some(Arc::clone(&watcher));
    Ok(watcher)
}

impl Watcher {
    fn run(&self) {
        WATCHES.set(true);
        let mut buffer = Vec::with_capacity(16);
        loop {
            buffer.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut buffer), None) {
                Ok(_) | Err(Errno::INTR) => {}
                // Only a descriptor closed behind our back leads here. Without it nothing can be heard.
                Err(_) => return,
            }
            for event in &buffer {
                // None: its connection is being dropped.
                let number = event.data.u64();
                let on_death = {
                    let mut next = self.next.lock();
                    let on_death = next.on_death.remove(&number);
                    next.running = on_death.is_some().then_some(number);
                    on_death
                };
                if let Some(on_death) = on_death {
                    on_death();
                    self.next.lock().running = None;
                }
            }
        }
    }
}
