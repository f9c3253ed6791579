// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocking round trips on futexes.

use super::{Arm, PingPong};
use doorbell::Bell;
use doorbell::wait::Futex;
use rustix::thread::futex::{Flags, wait, wake};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub fn bell(cpus: (usize, usize)) -> Box<dyn Arm> {
    let mut there: Bell<Futex> = Bell::new().expect("memory");
    let mut back: Bell<Futex> = Bell::new().expect("memory");
    let (call, answer) = (there.clone(), back.clone());
    let client = move || {
        call.ring();
        back.wait().expect("rung");
    };
    let server = move || {
        there.wait().expect("rung");
        answer.ring();
    };
    Box::new(PingPong::new(cpus, 1, client, server))
}

#[repr(align(128))]
struct Word(AtomicU32);

/// What one writes by hand: store, wake, and wait while the word has the old value. One wake for each store, for the
/// writer keeps no account of sleepers.
pub fn bare(cpus: (usize, usize)) -> Box<dyn Arm> {
    let words = Arc::new([Word(AtomicU32::new(0)), Word(AtomicU32::new(0))]);
    let pass = |word: &Word, turn: u32| {
        word.0.store(turn, Ordering::SeqCst);
        wake(&word.0, Flags::PRIVATE, 1).expect("a valid address");
    };
    let wait_for = |word: &Word, turn: u32| {
        while word.0.load(Ordering::Acquire) != turn {
            // Changed already, woken, or a signal: look again.
            let _ = wait(&word.0, Flags::PRIVATE, turn.wrapping_sub(1), None);
        }
    };
    let ours = Arc::clone(&words);
    let mut turn = 0_u32;
    let client = move || {
        turn = turn.wrapping_add(1);
        pass(&ours[0], turn);
        wait_for(&ours[1], turn);
    };
    let mut turn = 0_u32;
    let server = move || {
        turn = turn.wrapping_add(1);
        wait_for(&words[0], turn);
        pass(&words[1], turn);
    };
    Box::new(PingPong::new(cpus, 1, client, server))
}
