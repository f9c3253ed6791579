// SPDX-License-Identifier: MIT OR Apache-2.0
//! The variants: each way, with the bell and by hand.

pub mod epoll;
pub mod futex;
pub mod ring_nobody;
pub mod spin;

use crate::clock::{nanoseconds_per_tick, pin, process_cpu, ticks};
use crate::partner::{Partner, Place};
use doorbell::Bell;
use doorbell::wait::Wait;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::sync::atomic::AtomicU32;

/// One block of one variant.
pub struct Block {
    /// One value for each round trip, or one mean for each group of those too short to time alone.
    pub nanoseconds: Vec<f64>,
    /// Processor time of both sides for one round trip.
    pub cpu: f64,
}

pub trait Variant {
    fn block(&mut self, count: u32) -> Result<Block, String>;
}

/// A round trip between this thread and a partner, both pinned.
pub struct PingPong<C> {
    call: C,
    partner: Partner,
    /// Round trips timed together.
    group: u32,
    cpus: (usize, usize),
}

impl<C: FnMut(u32) + 'static> PingPong<C> {
    /// `call` makes as many round trips as it is told to, `answer` serves as many.
    pub fn boxed(
        place: Place,
        cpus: (usize, usize),
        group: u32,
        call: C,
        mut answer: impl FnMut(u32) + Send + 'static,
    ) -> Result<Box<dyn Variant>, String> {
        let partner = Partner::start(place, move |desk| {
            while let Some([cpu, warm, count, ..]) = desk.order() {
                pin(cpu as usize);
                answer(warm as u32);
                let start = process_cpu();
                answer(count as u32);
                // Threads share a process, whose time the other side reads.
                let cpu = if place == Place::Processes { process_cpu() - start } else { 0 };
                desk.report([cpu, 0, 0, 0, 0, 0, 0, 0]);
            }
        })?;
        Ok(Box::new(Self { call, partner, group, cpus }))
    }
}

/// A round trip by two bells that wait by `W`.
pub fn bells<W: Wait + Default + Send + 'static>(
    place: Place,
    cpus: (usize, usize),
    group: u32,
) -> Result<Box<dyn Variant>, String> {
    let make = || match place {
        Place::Threads => Bell::new(),
        Place::Processes => Bell::for_children(0),
    };
    let make = || make().map(|bell| bell.waiting_by::<W>()).map_err(|error| error.to_string());
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
    PingPong::boxed(place, cpus, group, call, answer)
}

/// Round trips before the clock starts, which find the partner awake.
const WARM: u32 = 10;

impl<C: FnMut(u32)> Variant for PingPong<C> {
    fn block(&mut self, count: u32) -> Result<Block, String> {
        let groups = count.div_ceil(self.group);
        let count = groups * self.group;
        pin(self.cpus.0);
        self.partner.order([self.cpus.1 as u64, WARM.into(), count.into(), 0, 0, 0, 0, 0])?;
        (self.call)(WARM);
        let mut nanoseconds = Vec::with_capacity(groups as usize);
        let scale = nanoseconds_per_tick() / f64::from(self.group);
        let cpu = process_cpu();
        for _ in 0..groups {
            let start = ticks();
            (self.call)(self.group);
            nanoseconds.push((ticks() - start) as f64 * scale);
        }
        let cpu = process_cpu() - cpu;
        let [theirs, ..] = self.partner.report()?;
        Ok(Block { nanoseconds, cpu: (cpu + theirs) as f64 / f64::from(count) })
    }
}

/// Two zeroed words on cache lines of their own, shared with
/// children. They stay until the program ends.
pub fn words() -> Result<[&'static AtomicU32; 2], String> {
    const PAGE: usize = 4096;
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: new memory, placed by the kernel.
    let base = unsafe { mmap_anonymous(std::ptr::null_mut(), PAGE, protection, flags) };
    let base = base.map_err(|errno| format!("mmap: {errno}"))?.cast::<AtomicU32>();
    // SAFETY: within the page, aligned, zeroed, never unmapped.
    Ok([0, PAGE / 8].map(|offset| unsafe { &*base.add(offset) }))
}
