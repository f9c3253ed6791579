// SPDX-License-Identifier: MIT OR Apache-2.0
//! Round trips between spinners.

use super::{Arm, PingPong};
use doorbell::Bell;
use doorbell::wait::Spin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A single round trip is too short for the clock.
const GROUP: u32 = 100;

pub fn bell(cpus: (usize, usize)) -> Box<dyn Arm> {
    let mut there: Bell<Spin> = Bell::new().expect("memory");
    let mut back: Bell<Spin> = Bell::new().expect("memory");
    let (call, answer) = (there.clone(), back.clone());
    let client = move || {
        call.ring();
        back.wait().expect("rung");
    };
    let server = move || {
        there.wait().expect("rung");
        answer.ring();
    };
    Box::new(PingPong::new(cpus, GROUP, client, server))
}

#[repr(align(128))]
struct Line(AtomicU32);

pub fn bare(cpus: (usize, usize)) -> Box<dyn Arm> {
    let lines = Arc::new([Line(AtomicU32::new(0)), Line(AtomicU32::new(0))]);
    let wait_for = |line: &Line, turn: u32| {
        while line.0.load(Ordering::Acquire) != turn {
            std::hint::spin_loop();
        }
    };
    let ours = Arc::clone(&lines);
    let mut turn = 0_u32;
    let client = move || {
        turn = turn.wrapping_add(1);
        ours[0].0.store(turn, Ordering::Release);
        wait_for(&ours[1], turn);
    };
    let mut turn = 0_u32;
    let server = move || {
        turn = turn.wrapping_add(1);
        wait_for(&lines[0], turn);
        lines[1].0.store(turn, Ordering::Release);
    };
    Box::new(PingPong::new(cpus, GROUP, client, server))
}
