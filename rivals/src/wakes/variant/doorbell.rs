// SPDX-License-Identifier: MIT OR Apache-2.0
//! This project's bell, with each way of waiting.

use super::{Epoll, Heard, MakeNotifier, Opened, Waiter, opened};
use crate::hosted;
use crate::partner::Place;
use crate::wakes::shared::Mail;
use doorbell::peer::Trusted;
use doorbell::rendezvous::{Offer, Segment};
use doorbell::wait::{Futex, Wait};
use doorbell::{Bell, BellFd, WaitError};
use rustix::event::epoll;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

fn heard(rings: Result<Option<NonZeroU32>, WaitError>) -> Option<u64> {
    match rings {
        // A notifier that has ended.
        Err(WaitError::PeerGone(_)) => Some(0),
        rings => rings.expect("waited").map(|rings| rings.get().into()),
    }
}

struct ByBell<W>(Bell<W>);

impl<W: Wait> Waiter for ByBell<W> {
    fn wait(&mut self, limit: Duration, _: &Mail) -> Heard {
        heard(self.0.wait_timeout(limit)).map_or(Heard::TimedOut, Heard::Woken)
    }
    fn sweep(&mut self, _: &Mail) -> u64 {
        self.0.try_wait().map_or(0, |rings| rings.get().into())
    }
}

struct ByEpoll {
    file: BellFd<Futex>,
    epoll: Epoll,
    edge: bool,
}

impl Waiter for ByEpoll {
    fn wait(&mut self, limit: Duration, mail: &Mail) -> Heard {
        if self.edge {
            // An edge that came before is not waited for.
            match self.sweep(mail) {
                0 => {}
                some => return Heard::Woken(some),
            }
        }
        if self.epoll.wait(limit) { Heard::Woken(self.sweep(mail)) } else { Heard::TimedOut }
    }
    fn again(&mut self, limit: Duration, mail: &Mail) -> Heard {
        if self.epoll.wait(limit) { Heard::Woken(self.sweep(mail)) } else { Heard::TimedOut }
    }
    fn sweep(&mut self, _: &Mail) -> u64 {
        heard(self.file.heard()).unwrap_or(0)
    }
}

fn open<W: Waiter + 'static>(
    place: Place,
    notifiers: usize,
    waiter: impl FnOnce(&Segment) -> W + 'static,
) -> Result<Opened, String> {
    let offer = Offer { bells: 1, eventfds: 1, payload: 0, ..Offer::default() };
    if place == Place::Threads {
        let segment = Arc::new(Segment::for_threads(&offer).map_err(|error| error.to_string())?);
        let same = Arc::clone(&segment);
        let make = move |_| {
            let bell: Bell<Futex> = same.bell_waiting_by(0).expect("one bell");
            let notifier: MakeNotifier = Box::new(move || Box::new(move || bell.ring()));
            notifier
        };
        return Ok(opened(notifiers, make, move || waiter(&segment)));
    }
    let (ours, theirs) = hosted::sockets(notifiers)?;
    let join = |socket| {
        let notifier: MakeNotifier = Box::new(move || {
            let connection = hosted::join::<Trusted>(socket);
            let bell: Bell<Futex> = connection.bell_waiting_by(0).expect("one bell");
            Box::new(move || {
                let _ = &connection;
                bell.ring();
            })
        });
        notifier
    };
    let watch: super::Watch = Box::new(move |then| {
        let segment = Arc::new(Segment::new(&offer).expect("memory"));
        let _connections = hosted::host::<Trusted>(ours, std::slice::from_ref(&segment));
        then(&mut waiter(&segment));
    });
    Ok(Opened { notifiers: theirs.into_iter().map(join).collect(), watch })
}

pub fn by<W: Wait + Default + 'static>(place: Place, notifiers: usize) -> Result<Opened, String> {
    open(place, notifiers, |segment| ByBell::<W>(segment.bell_waiting_by(0).expect("one bell")))
}

pub fn by_epoll(place: Place, notifiers: usize, edge: bool) -> Result<Opened, String> {
    open(place, notifiers, move |segment| {
        let file = segment.bell_waiting_by(0).expect("one bell").into_fd().expect("a slot");
        let more = if edge { epoll::EventFlags::ET } else { epoll::EventFlags::empty() };
        ByEpoll { epoll: Epoll::new(&file, more), file, edge }
    })
}
