// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unix datagrams and epoll by hand: of what there is, up to three
//! are received for each time it is readable.

use super::{Epoll, Heard, Opened, Waiter, each, opened};
use crate::partner::Place;
use crate::wakes::shared::Mail;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use std::sync::Arc;
use std::time::Duration;

struct Receives {
    socket: OwnedFd,
    epoll: Epoll,
    turn: usize,
}

impl Receives {
    fn one(&self) -> bool {
        let mut byte = [0; 1];
        recv(&self.socket, &mut byte, RecvFlags::DONTWAIT).is_ok_and(|(got, _)| got == 1)
    }
}

impl Waiter for Receives {
    fn wait(&mut self, limit: Duration, _: &Mail) -> Heard {
        if !self.epoll.wait(limit) {
            return Heard::TimedOut;
        }
        self.turn += 1;
        Heard::Woken((0..=self.turn % 3).take_while(|_| self.one()).count() as u64)
    }
    fn sweep(&mut self, _: &Mail) -> u64 {
        std::iter::repeat_with(|| self.one()).take_while(|got| *got).count() as u64
    }
}

pub fn few(_: Place, notifiers: usize) -> Result<Opened, String> {
    let (socket, theirs) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| format!("socketpair: {errno}"))?;
    let notify =
        each(Arc::new(theirs), |socket| assert_eq!(send(&**socket, &[1], SendFlags::empty()), Ok(1)));
    Ok(opened(notifiers, notify, move || Receives {
        epoll: Epoll::new(&socket, epoll::EventFlags::empty()),
        socket,
        turn: 0,
    }))
}
