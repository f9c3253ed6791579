// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocking round trips on futexes.

use super::{PingPong, Variant, words};
use crate::partner::Place;
use doorbell::Bell;
use doorbell::wait::Futex;
use std::sync::atomic::AtomicU32;

unsafe extern "C" {
    fn futex_call(there: *const AtomicU32, back: *const AtomicU32, turn: u32, times: u32, private: i32);
    fn futex_answer(there: *const AtomicU32, back: *const AtomicU32, turn: u32, times: u32, private: i32);
}

pub fn bell(place: Place, cpus: (usize, usize)) -> Result<Box<dyn Variant>, String> {
    let make = || match place {
        Place::Threads => Bell::new(),
        Place::Processes => Bell::for_children(0),
    };
    let make = || make().map(|bell| bell.waiting_by::<Futex>()).map_err(|error| error.to_string());
    let (mut there, mut back) = (make()?, make()?);
    let (ring_there, ring_back) = (there.clone(), back.clone());
    let call = move |times: u32| {
        for _ in 0..times {
            ring_there.ring();
            back.wait().expect("rung");
        }
    };
    let answer = move |times: u32| {
        for _ in 0..times {
            there.wait().expect("rung");
            ring_back.ring();
        }
    };
    PingPong::boxed(place, cpus, 1, call, answer)
}

pub fn by_hand(place: Place, cpus: (usize, usize)) -> Result<Box<dyn Variant>, String> {
    let [there, back] = words()?;
    let private = i32::from(place == Place::Threads);
    let mut turn = 0_u32;
    let call = move |times: u32| {
        // SAFETY: two live words.
        unsafe { futex_call(there, back, turn, times, private) };
        turn = turn.wrapping_add(times);
    };
    let mut turn = 0_u32;
    let answer = move |times: u32| {
        // SAFETY: as above.
        unsafe { futex_answer(there, back, turn, times, private) };
        turn = turn.wrapping_add(times);
    };
    PingPong::boxed(place, cpus, 1, call, answer)
}
