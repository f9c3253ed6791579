// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pipe and epoll by hand: of the bytes there are, up to three are
//! read for each time it is readable.

use super::{Epoll, Heard, Opened, Waiter, each, opened};
use crate::partner::Place;
use crate::wakes::shared::Mail;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, pipe_with};
use std::sync::Arc;
use std::time::Duration;

struct Reads {
    pipe: OwnedFd,
    epoll: Epoll,
    turn: usize,
}

impl Reads {
    fn read(&self, most: usize) -> u64 {
        let mut bytes = [0; 4096];
        rustix::io::read(&self.pipe, &mut bytes[..most]).map_or(0, |got| got as u64)
    }
}

impl Waiter for Reads {
    fn wait(&mut self, limit: Duration, _: &Mail) -> Heard {
        if !self.epoll.wait(limit) {
            return Heard::TimedOut;
        }
        self.turn += 1;
        Heard::Woken(self.read(1 + self.turn % 3))
    }
    fn sweep(&mut self, _: &Mail) -> u64 {
        std::iter::repeat_with(|| self.read(4096)).take_while(|got| *got > 0).sum()
    }
}

pub fn few(_: Place, notifiers: usize) -> Result<Opened, String> {
    let (pipe, theirs) = pipe_with(PipeFlags::CLOEXEC).map_err(|errno| format!("pipe: {errno}"))?;
    // Only reads shall not block.
    rustix::io::ioctl_fionbio(&pipe, true).map_err(|errno| format!("FIONBIO: {errno}"))?;
    let notify = each(Arc::new(theirs), |pipe| assert_eq!(rustix::io::write(&**pipe, &[1]), Ok(1)));
    Ok(opened(notifiers, notify, move || Reads {
        epoll: Epoll::new(&pipe, epoll::EventFlags::empty()),
        pipe,
        turn: 0,
    }))
}
