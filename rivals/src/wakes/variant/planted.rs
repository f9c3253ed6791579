// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mistakes put in by hand, which this program must find: else what
//! it does not find elsewhere says nothing.

use super::eventfd::{read, ring};
use super::{ByMail, Epoll, Heard, MakeNotifier, Opened, Sleep, Waiter, opened};
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
        // The mistake: a token that is added between these two is consumed with the old one, and the next
        // notification finds that there is one.
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
    let same = Arc::clone(&file);
    let make = move |_| {
        let file = Arc::clone(&same);
        let notifier: MakeNotifier = Box::new(move || {
            Box::new(move || {
                let [count, told] = words;
                count.fetch_add(1, SeqCst);
                if told.swap(1, SeqCst) == 0 {
                    ring(&file);
                }
            })
        });
        notifier
    };
    Ok(opened(notifiers, make, move || {
        let epoll = Epoll::new(&*file, epoll::EventFlags::empty());
        RearmsFirst { file, epoll, words }
    }))
}

struct Reads(Arc<OwnedFd>, Epoll);

impl Sleep for Reads {
    fn sleep(&mut self, limit: Duration, _: &dyn Fn() -> bool) -> bool {
        let woken = self.1.wait(limit);
        read(&self.0);
        woken
    }
}

/// One wake of so many is left out: a multiple of the length of a
/// short burst, so that it is the last of one sometimes.
const FORGOTTEN: u64 = 500;

pub fn forgets(_: Place, notifiers: usize) -> Result<Opened, String> {
    let file = file()?;
    let same = Arc::clone(&file);
    let make = move |_| {
        let file = Arc::clone(&same);
        let mut count = 0;
        let notifier: MakeNotifier = Box::new(move || {
            Box::new(move || {
                count += 1;
                if count % FORGOTTEN != 0 {
                    ring(&file);
                }
            })
        });
        notifier
    };
    Ok(opened(notifiers, make, move || {
        let epoll = Epoll::new(&*file, epoll::EventFlags::empty());
        ByMail(Reads(file, epoll))
    }))
}

/// One call of so many does not return: as if a notifier that waits for room were not woken.
const STAYING: u64 = 1000;

pub fn stays(_: Place, notifiers: usize) -> Result<Opened, String> {
    let file = file()?;
    let same = Arc::clone(&file);
    let make = move |_| {
        let file = Arc::clone(&same);
        let mut count = 0;
        let notifier: MakeNotifier = Box::new(move || {
            Box::new(move || {
                count += 1;
                ring(&file);
                if count == STAYING {
                    loop {
                        std::thread::park();
                    }
                }
            })
        });
        notifier
    };
    Ok(opened(notifiers, make, move || {
        let epoll = Epoll::new(&*file, epoll::EventFlags::empty());
        ByMail(Reads(file, epoll))
    }))
}
