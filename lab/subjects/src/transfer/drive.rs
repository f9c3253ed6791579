// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trial of a I/O engine: one transfer after another at random places, and beside them what the
//! device and the kernel counted, which says whether it was what it is called.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::scratch::{stamp, stamp_all};
use super::target::Opened;
use super::{Buffer, Engine, Fault, Links, Place};
use crate::lone_side::drive_alone;
use doorbell_harness::control::Step;
use doorbell_harness::role::Role;
use doorbell_harness::side::{Side, SideError};
use doorbell_machine::block;
use doorbell_machine::clock::Now;
use doorbell_machine::root::Root;
use doorbell_results::configuration::{Direction, Pattern};
use doorbell_results::record::io::Io;

/// A way and what it transfers between.
pub(crate) struct Drive {
    pub(crate) engine: &'static Engine,
    pub(crate) target: Opened,
}

/// Transfers before the window: a ring's first ones fault in its
/// pages, and a kernel's thread needs some to get up.
const WARM_UP: u64 = 64;

/// What the buffer holds before a read, and no stamp is.
const POISON: u64 = 0;

impl Links for Drive {
    fn run_role(&self, role: Role, side: &mut Side) -> Result<(), SideError> {
        drive_alone(role, side, |side| self.drive(side))
    }
}

/// The kernel's and the device's counts at one moment.
struct Reading {
    interrupts: Option<u64>,
    completed: Option<block::Completed>,
}

impl Drive {
    fn read(&self) -> Reading {
        let root = Root::live();
        let device = self.target.device.as_ref();
        let [major, minor] = self.target.number;
        let lines = device.and_then(|device| device.interrupts.as_ref()).filter(|lines| !lines.is_empty());
        Reading {
            interrupts: lines.and_then(|lines| block::interrupts_taken(&root, lines)),
            completed: device
                .filter(|device| device.counts != Some(false))
                .and_then(|_| doorbell_machine::block::completed(&root, major, minor)),
        }
    }

    fn drive(&self, side: &mut Side) -> Result<(), SideError> {
        let Pattern::Io { direction, .. } = side.configuration.pattern else {
            return Err(Fault::new("doorbell io", "the configuration has another pattern").into());
        };
        // Never freed: a device may still write into it when a
        // submission fails, and the process ends after one trial.
        let buffer: &Buffer = Box::leak(Box::new(Buffer::new(side.configuration.size as usize)));
        let place = Place {
            file: self.target.file.as_fd(),
            buffer,
            direction,
            thread_cpu: side.configuration.placement.cpus.map(|cpus| cpus[1]),
        };
        let mut transfer = (self.engine.open)(place)?;
        let size = u64::from(side.configuration.size);
        let blocks = self.target.bytes / size;
        // What is known of every sector is held against every block that is read.
        let known = self.target.prepared.as_ref().map_or(0, |prepared| prepared.bytes) / size;
        let reads = direction == Direction::Read && self.engine.name != super::CONTROL;
        let clock = side.clock;
        let mut random = fastrand::Rng::new();
        let mut once = |side: &mut Side, record: bool| -> Result<u64, Fault> {
            let block = random.u64(..blocks);
            let offset = block * size;
            // Every sector's own stamp: a smaller block of another trial may begin at any of them.
            match direction {
                Direction::Write => stamp_all(buffer, offset),
                Direction::Read => buffer.stamp(POISON),
            }
            let before = clock.now();
            transfer.once(offset)?;
            let after = clock.now_awake();
            if record {
                side.times.transfer.record(clock.ps(after.saturating_sub(before)));
            }
            if reads && block < known && buffer.stamped() != stamp(offset) {
                return Err(Fault::new(
                    "the block that was read",
                    format!("at {offset} is another than was written there"),
                ));
            }
            Ok(after)
        };
        for number in 0..WARM_UP {
            once(side, false)?;
            side.step(Step::Operates, number);
        }
        let most = side.configuration.until.count.unwrap_or(u64::MAX);
        let window = side.configuration.until.time_ns.map(|ns| clock.ticks(Duration::from_nanos(ns)));
        let before = self.read();
        let threads_before = other_threads_ns();
        let opened = side.open_window();
        let mut done = 0;
        while done < most && !side.interrupted() {
            let now = once(side, true)?;
            done += 1;
            side.step(Step::Operates, WARM_UP + done);
            if window.is_some_and(|window| now.saturating_sub(opened) >= window) {
                break;
            }
        }
        side.close_window(opened);
        let threads_ns = other_threads_ns().saturating_sub(threads_before);
        let after = self.read();
        let device = self.target.device.clone();
        let completed = before.completed.zip(after.completed).map(|(before, after)| {
            let reads = after.reads.saturating_sub(before.reads);
            let others = after.others.saturating_sub(before.others);
            if direction == Direction::Read { [reads, others] } else { [others, reads] }
        });
        side.io = Some(Io {
            device,
            prepared: self.target.prepared.clone(),
            interrupts: before.interrupts.zip(after.interrupts).map(|(then, now)| now.saturating_sub(then)),
            device_operations: completed.map(|[own, _]| own),
            other_operations: completed.map(|[_, other]| other),
            kernel_thread_ns: threads_ns,
        });
        side.tally.sent = done;
        side.tally.seen = done;
        side.tally.warmup = WARM_UP;
        Ok(())
    }
}

/// CPU time of the other threads of this process, nanoseconds: those
/// that the kernel made for a ring.
pub(crate) fn other_threads_ns() -> u64 {
    let ns = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    // The process's first: what this thread runs in between then only makes the difference smaller.
    let process = ns(ClockId::ProcessCPUTime);
    process.saturating_sub(ns(ClockId::ThreadCPUTime))
}
