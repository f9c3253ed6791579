// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ringing while nobody waits, against a full fence and a load.

use super::{Arm, Block};
use crate::clock::{nanoseconds_per_tick, pin, process_cpu, ticks};
use doorbell::Bell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering, fence};

struct Loop<F>(F);

const GROUP: u32 = 1000;

impl<F: FnMut()> Arm for Loop<F> {
    fn block(&mut self, rounds: u32) -> Block {
        pin(0);
        let cpu = process_cpu();
        let nanoseconds = (0..rounds / GROUP)
            .map(|_| {
                let start = ticks();
                for _ in 0..GROUP {
                    (self.0)();
                }
                (ticks() - start) as f64 * nanoseconds_per_tick() / f64::from(GROUP)
            })
            .collect();
        Block { nanoseconds, cpu_nanoseconds: (process_cpu() - cpu) as f64 / f64::from(rounds) }
    }
}

pub fn bell() -> Box<dyn Arm> {
    let bell: Bell = Bell::new().expect("memory");
    Box::new(Loop(move || bell.ring()))
}

pub fn bare() -> Box<dyn Arm> {
    let word = Box::new(AtomicU32::new(0));
    Box::new(Loop(move || {
        fence(Ordering::SeqCst);
        black_box(word.load(Ordering::Relaxed));
    }))
}
