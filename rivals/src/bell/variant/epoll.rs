// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocking round trips through epoll, level-triggered.

use super::{PingPong, Variant};
use crate::partner::Place;
use doorbell::wait::Futex;
use doorbell::{Bell, BellFd};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use std::mem::MaybeUninit;

unsafe extern "C" {
    fn epoll_call(there: i32, back_epoll: i32, back: i32, times: u32);
    fn epoll_answer(there_epoll: i32, there: i32, back: i32, times: u32);
}

fn epoll_of(file: impl AsFd) -> Result<OwnedFd, String> {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|errno| format!("epoll_create: {errno}"))?;
    epoll::add(&set, file, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
        .map_err(|errno| format!("epoll_ctl: {errno}"))?;
    Ok(set)
}

pub fn bell(cpus: (usize, usize)) -> Result<Box<dyn Variant>, String> {
    let make = || Bell::new().map(|bell| bell.waiting_by::<Futex>()).map_err(|error| error.to_string());
    let (call_bell, answer_bell) = (make()?, make()?);
    let file = |bell: &Bell<Futex>| bell.clone().into_fd().map_err(|error| error.to_string());
    let (mut there, mut back): (BellFd<Futex>, BellFd<Futex>) = (file(&call_bell)?, file(&answer_bell)?);
    let (there_set, back_set) = (epoll_of(&there)?, epoll_of(&back)?);
    let hear = |file: &mut BellFd<Futex>, set: &OwnedFd| loop {
        let mut buffer = [MaybeUninit::uninit(); 1];
        epoll::wait(set, &mut buffer[..], None).expect("a valid set");
        if file.heard().expect("nobody dies").is_some() {
            break;
        }
    };
    let call = move |times: u32| {
        for _ in 0..times {
            call_bell.ring();
            hear(&mut back, &back_set);
        }
    };
    let answer = move |times: u32| {
        for _ in 0..times {
            hear(&mut there, &there_set);
            answer_bell.ring();
        }
    };
    PingPong::boxed(Place::Threads, cpus, 1, call, answer)
}

/// Descriptors that both sides use.
struct Files {
    there: OwnedFd,
    back: OwnedFd,
    there_set: OwnedFd,
    back_set: OwnedFd,
}

pub fn by_hand(cpus: (usize, usize)) -> Result<Box<dyn Variant>, String> {
    let make = || {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| format!("eventfd: {errno}"))
    };
    let (there, back) = (make()?, make()?);
    let (there_set, back_set) = (epoll_of(&there)?, epoll_of(&back)?);
    let ours = std::sync::Arc::new(Files { there, back, there_set, back_set });
    let theirs = std::sync::Arc::clone(&ours);
    let call = move |times: u32| {
        let Files { there, back, back_set, .. } = &*ours;
        // SAFETY: descriptors that `ours` keeps open.
        unsafe { epoll_call(there.as_raw_fd(), back_set.as_raw_fd(), back.as_raw_fd(), times) };
    };
    let answer = move |times: u32| {
        let Files { there, back, there_set, .. } = &*theirs;
        // SAFETY: as above.
        unsafe { epoll_answer(there_set.as_raw_fd(), there.as_raw_fd(), back.as_raw_fd(), times) };
    };
    PingPong::boxed(Place::Threads, cpus, 1, call, answer)
}
