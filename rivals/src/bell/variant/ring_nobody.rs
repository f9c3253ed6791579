// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ringing while nobody waits, against a full fence and a load.

use super::{Block, Variant, words};
use crate::clock::{nanoseconds_per_tick, pin, process_cpu, ticks};
use doorbell::Bell;
use std::sync::atomic::AtomicU32;

unsafe extern "C" {
    fn fence_and_load(word: *const AtomicU32, times: u32);
}

struct Loop<F> {
    times: F,
    cpu: usize,
}

const GROUP: u32 = 1000;

impl<F: FnMut(u32)> Variant for Loop<F> {
    fn block(&mut self, count: u32) -> Result<Block, String> {
        pin(self.cpu);
        let groups = count.div_ceil(GROUP);
        let cpu = process_cpu();
        let nanoseconds = (0..groups)
            .map(|_| {
                let start = ticks();
                (self.times)(GROUP);
                (ticks() - start) as f64 * nanoseconds_per_tick() / f64::from(GROUP)
            })
            .collect();
        Ok(Block { nanoseconds, cpu: (process_cpu() - cpu) as f64 / f64::from(groups * GROUP) })
    }
}

pub fn bell(cpu: usize) -> Result<Box<dyn Variant>, String> {
    let bell: Bell = Bell::new().map_err(|error| error.to_string())?;
    Ok(Box::new(Loop { times: move |times: u32| (0..times).for_each(|_| bell.ring()), cpu }))
}

pub fn by_hand(cpu: usize) -> Result<Box<dyn Variant>, String> {
    let [word, _] = words()?;
    // SAFETY: a live word.
    Ok(Box::new(Loop { times: move |times: u32| unsafe { fence_and_load(word, times) }, cpu }))
}
