// SPDX-License-Identifier: MIT OR Apache-2.0
//! Round trips between spinners.

use super::{PingPong, Variant, words};
use crate::partner::Place;
use std::sync::atomic::AtomicU32;

unsafe extern "C" {
    fn line_call(there: *const AtomicU32, back: *const AtomicU32, turn: u32, times: u32);
    fn line_answer(there: *const AtomicU32, back: *const AtomicU32, turn: u32, times: u32);
}

/// A single round trip is too short for the clock.
pub const GROUP: u32 = 100;

pub fn by_hand(cpus: (usize, usize)) -> Result<Box<dyn Variant>, String> {
    let [there, back] = words()?;
    let mut turn = 0_u32;
    let call = move |times: u32| {
        // SAFETY: two live words.
        unsafe { line_call(there, back, turn, times) };
        turn = turn.wrapping_add(times);
    };
    let mut turn = 0_u32;
    let answer = move |times: u32| {
        // SAFETY: as above.
        unsafe { line_answer(there, back, turn, times) };
        turn = turn.wrapping_add(times);
    };
    PingPong::boxed(Place::Threads, cpus, GROUP, call, answer)
}
