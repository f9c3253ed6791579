// SPDX-License-Identifier: MIT OR Apache-2.0
//! An eventfd and epoll by hand: level-triggered and read whole or by
//! ones, edge-triggered and read until there is nothing.

use super::{Epoll, Heard, Opened, Waiter, each, opened};
use crate::partner::Place;
use crate::wakes::shared::Mail;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Adds one.
pub fn ring(file: &OwnedFd) {
    assert_eq!(rustix::io::write(file, &1_u64.to_ne_bytes()), Ok(8));
}

/// What the counter gives; nothing if it is zero.
pub fn read(file: &OwnedFd) -> u64 {
    let mut bytes = [0; 8];
    rustix::io::read(file, &mut bytes).map_or(0, |_| u64::from_ne_bytes(bytes))
}

struct Level {
    file: Arc<OwnedFd>,
    epoll: Epoll,
}

impl Waiter for Level {
    fn wait(&mut self, limit: Duration, _: &Mail) -> Heard {
        if self.epoll.wait(limit) { Heard::Woken(read(&self.file)) } else { Heard::TimedOut }
    }
    fn sweep(&mut self, _: &Mail) -> u64 {
        std::iter::repeat_with(|| read(&self.file)).take_while(|count| *count > 0).sum()
    }
}

/// Reads before it waits: who waits with something unread may wait for ever.
struct Edge(Level);

impl Waiter for Edge {
    fn wait(&mut self, limit: Duration, mail: &Mail) -> Heard {
        match self.sweep(mail) {
            0 if !self.0.epoll.wait(limit) => Heard::TimedOut,
            0 => Heard::Woken(self.sweep(mail)),
            some => Heard::Woken(some),
        }
    }
    fn again(&mut self, limit: Duration, mail: &Mail) -> Heard {
        self.0.wait(limit, mail)
    }
    fn sweep(&mut self, mail: &Mail) -> u64 {
        self.0.sweep(mail)
    }
}

fn open<W: Waiter + 'static>(
    notifiers: usize,
    flags: EventfdFlags,
    more: epoll::EventFlags,
    waiter: fn(Level) -> W,
) -> Result<Opened, String> {
    let flags = flags | EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let file = Arc::new(eventfd(0, flags).map_err(|errno| format!("eventfd: {errno}"))?);
    let notify = each(Arc::clone(&file), |file| ring(file));
    Ok(opened(notifiers, notify, move || waiter(Level { epoll: Epoll::new(&*file, more), file })))
}

pub fn level(_: Place, notifiers: usize) -> Result<Opened, String> {
    open(notifiers, EventfdFlags::empty(), epoll::EventFlags::empty(), |level| level)
}

pub fn one_by_one(_: Place, notifiers: usize) -> Result<Opened, String> {
    open(notifiers, EventfdFlags::SEMAPHORE, epoll::EventFlags::empty(), |level| level)
}

pub fn edge(_: Place, notifiers: usize) -> Result<Opened, String> {
    open(notifiers, EventfdFlags::empty(), epoll::EventFlags::ET, Edge)
}
