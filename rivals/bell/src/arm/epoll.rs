// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocking round trips through epoll.

use super::{Arm, PingPong};
use doorbell::wait::Futex;
use doorbell::{Bell, BellFd};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use std::mem::MaybeUninit;
use std::sync::Arc;

struct Loop(OwnedFd);

impl Loop {
    fn on(file: impl AsFd) -> Self {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a descriptor");
        epoll::add(&epoll, file, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
            .expect("a pollable file");
        Self(epoll)
    }

    fn wait(&self) {
        let mut buffer = [MaybeUninit::uninit(); 1];
        epoll::wait(&self.0, &mut buffer[..], None).expect("a valid set");
    }
}

pub fn bell(cpus: (usize, usize)) -> Box<dyn Arm> {
    let (call, answer): (Bell<Futex>, Bell<Futex>) =
        (Bell::new().expect("memory"), Bell::new().expect("memory"));
    let file = |bell: &Bell<Futex>| bell.clone().into_fd().expect("a seat");
    let (mut there, mut back): (BellFd<Futex>, BellFd<Futex>) = (file(&call), file(&answer));
    let (there_loop, back_loop) = (Loop::on(&there), Loop::on(&back));
    let heard = |file: &mut BellFd<Futex>, events: &Loop| loop {
        events.wait();
        if file.heard().expect("nobody dies").is_some() {
            break;
        }
    };
    let client = move || {
        call.ring();
        heard(&mut back, &back_loop);
    };
    let server = move || {
        heard(&mut there, &there_loop);
        answer.ring();
    };
    Box::new(PingPong::new(cpus, 1, client, server))
}

/// What one writes by hand: write, `epoll_wait`, read.
pub fn bare(cpus: (usize, usize)) -> Box<dyn Arm> {
    let make = || Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("a descriptor"));
    let (there, back) = (make(), make());
    let (there_loop, back_loop) = (Loop::on(&*there), Loop::on(&*back));
    let write = |file: &OwnedFd| {
        rustix::io::write(file, &1_u64.to_ne_bytes()).expect("room in the counter");
    };
    let take = |file: &OwnedFd, events: &Loop| loop {
        events.wait();
        if rustix::io::read(file, &mut [0; 8]).is_ok() {
            break;
        }
    };
    let (call, answer) = (Arc::clone(&there), Arc::clone(&back));
    let client = move || {
        write(&call);
        take(&back, &back_loop);
    };
    let server = move || {
        take(&there, &there_loop);
        write(&answer);
    };
    Box::new(PingPong::new(cpus, 1, client, server))
}
