// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arms: each way, with the bell and by hand.

pub mod epoll;
pub mod futex;
pub mod ring_nobody;
pub mod spin;

use crate::clock::{nanoseconds_per_tick, pin, process_cpu, ticks};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// One block of one arm.
pub struct Block {
    /// One value for each round, or one mean for each group of rounds too short to time alone.
    pub nanoseconds: Vec<f64>,
    /// Processor time of both sides for one round.
    pub cpu_nanoseconds: f64,
}

pub trait Arm {
    fn block(&mut self, rounds: u32) -> Block;
}

/// Two threads, pinned; the partner serves one block whenever it is told to, and sleeps in between, so that the arm
/// under measurement has the CPUs to itself.
pub struct PingPong<C> {
    client: C,
    go: Sender<u32>,
    done: Receiver<()>,
    /// Rounds timed together.
    group: u32,
    cpu: usize,
}

impl<C: FnMut()> PingPong<C> {
    /// `client` makes one round trip, `server` serves one.
    pub fn new(
        cpus: (usize, usize),
        group: u32,
        client: C,
        mut server: impl FnMut() + Send + 'static,
    ) -> Self {
        let (go, told) = channel::<u32>();
        let (finish, done) = channel();
        thread::spawn(move || {
            pin(cpus.1);
            while let Ok(rounds) = told.recv() {
                (0..rounds).for_each(|_| server());
                if finish.send(()).is_err() {
                    break;
                }
            }
        });
        Self { client, go, done, group, cpu: cpus.0 }
    }
}

impl<C: FnMut()> Arm for PingPong<C> {
    fn block(&mut self, rounds: u32) -> Block {
        pin(self.cpu);
        let groups = rounds / self.group;
        self.go.send(groups * self.group + self.group).expect("the server lives");
        // The partner has to wake up: one group to find it running.
        (0..self.group).for_each(|_| (self.client)());
        let cpu = process_cpu();
        let mut nanoseconds = Vec::with_capacity(groups as usize);
        let scale = nanoseconds_per_tick() / f64::from(self.group);
        for _ in 0..groups {
            let start = ticks();
            for _ in 0..self.group {
                (self.client)();
            }
            nanoseconds.push((ticks() - start) as f64 * scale);
        }
        let cpu = process_cpu() - cpu;
        self.done.recv().expect("the server lives");
        Block { nanoseconds, cpu_nanoseconds: cpu as f64 / f64::from(groups * self.group) }
    }
}
