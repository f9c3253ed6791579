// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mistakes put in by hand, which this program must find: else what
//! it does not find elsewhere says nothing.

use super::eventfd::{read, ring};
use super::{Epoll, Heard, Opened, Waiter, by_mail, each, opened};
use crate::partner::Place;
use crate::wakes::shared::{Mail, Word, words};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

fn file() -> Result<Arc<OwnedFd>, String> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    eventfd(0, flags).map(Arc::new).map_err(|errno| format!("eventfd: {errno}"))
}

/// Counts in one word, and says in the other that a token lies in the
/// eventfd: as long as one does, none is added.
struct RearmsFirst {
    file: Arc<OwnedFd>,
    epoll: Epoll,
    words: &'static [Word; 2],
}

impl Waiter for RearmsFirst {
    fn wait(&mut self, limit: Duration, _: &Mail) -> Heard {
        if !self.epoll.wait(limit) {
            return Heard::TimedOut;
        }
        let [count, told] = self.words;
        // The mistake: a token that is added between these two is consumed with the old one, and
        // the next notifier sees `told` = 1 and does not ring.
        told.store(0, SeqCst);
        // Makes the gap between them a wide one.
        std::thread::yield_now();
        read(&self.file);
        Heard::Woken(count.swap(0, SeqCst))
    }
    fn sweep(&mut self, _: &Mail) -> u64 {
        let [count, told] = self.words;
        read(&self.file);
        told.store(0, SeqCst);
        count.swap(0, SeqCst)
    }
}

pub fn rearms_first(_: Place, notifiers: usize) -> Result<Opened, String> {
    let (file, words) = (file()?, words::<2>()?);
    let notify = each(Arc::clone(&file), move |file| {
        let [count, told] = words;
        count.fetch_add(1, SeqCst);
        if told.swap(1, SeqCst) == 0 {
            ring(file);
        }
    });
    Ok(opened(notifiers, notify, move || {
        let epoll = Epoll::new(&*file, epoll::EventFlags::empty());
        RearmsFirst { file, epoll, words }
    }))
}

/// Each notifier's call by its number.
fn by_number(notifiers: usize, notify: fn(&OwnedFd, u64)) -> Result<Opened, String> {
    let file = file()?;
    let notify = each((Arc::clone(&file), 0), move |(file, number)| {
        *number += 1;
        notify(file, *number);
    });
    Ok(opened(notifiers, notify, move || {
        let epoll = Epoll::new(&*file, epoll::EventFlags::empty());
        by_mail(move |limit, _| {
            let woken = epoll.wait(limit);
            read(&file);
            woken
        })
    }))
}

/// One wake of so many is left out: a multiple of the length of a
/// short burst, so that it is the last of one sometimes.
const FORGOTTEN: u64 = 500;

pub fn forgets(_: Place, notifiers: usize) -> Result<Opened, String> {
    by_number(notifiers, |file, number| {
        if number % FORGOTTEN != 0 {
            ring(file);
        }
    })
}

/// The call with this number does not return: as if a notifier that waits for room were not woken.
const STAYING: u64 = 1000;

pub fn stays(_: Place, notifiers: usize) -> Result<Opened, String> {
    by_number(notifiers, |file, number| {
        ring(file);
        if number == STAYING {
            loop {
                std::thread::park();
            }
        }
    })
}
