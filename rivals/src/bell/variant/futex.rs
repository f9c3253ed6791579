// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocking round trips on futexes.

use super::{PingPong, Variant, words};
use crate::partner::Place;
use std::sync::atomic::AtomicU32;

unsafe extern "C" {
    fn futex_call(there: *const AtomicU32, back: *const AtomicU32, turn: u32, times: u32, private: i32);
    fn futex_answer(there: *const AtomicU32, back: *const AtomicU32, turn: u32, times: u32, private: i32);
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
