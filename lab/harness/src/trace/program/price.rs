// SPDX-License-Identifier: MIT OR Apache-2.0
//! What recording adds to a wake-up, tried out on this machine before the recording begins: two
//! threads on one CPU hand a byte to each other, with recording and without in turn.

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use super::{cpu_time, ns};

/// Rounds of a turn, and turns of each kind. Of each kind the cheapest counts: nothing makes a
/// wake-up cheaper than it is.
const ROUNDS: u32 = 500;
const TURNS: u32 = 10;

/// What recording adds, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Price {
    pub(super) wake_ns: f64,
    pub(super) call_ns: f64,
}

/// Two threads that wake each other when they are told to; for each wake-up one writes and one
/// reads.
#[derive(Debug)]
pub(super) struct Pair {
    tasks: [i32; 2],
    order: Sender<()>,
    done: Receiver<()>,
    threads: Vec<JoinHandle<()>>,
}

impl Pair {
    pub(super) fn new() -> io::Result<Self> {
        let ((mut read_there, mut write_there), (mut read_back, mut write_back)) = (io::pipe()?, io::pipe()?);
        let (order, ordered) = channel();
        let (tell, done) = channel();
        let (say, tasks) = channel();
        let cpu = rustix::thread::sched_getcpu();
        let begin = move |say: Sender<i32>| {
            let mut one = rustix::thread::CpuSet::new();
            one.set(cpu);
            // Where it may not stay on one CPU the price is that of two.
            let _ = rustix::thread::sched_setaffinity(None, &one);
            // Whoever made this thread waits for it.
            let _ = say.send(rustix::thread::gettid().as_raw_nonzero().get());
        };
        let told = say.clone();
        // Each ends when the other end of its pipe is closed.
        let there = std::thread::Builder::new().name("price".to_owned()).spawn(move || {
            begin(told);
            let mut byte = [0];
            while read_there.read_exact(&mut byte).is_ok() && write_back.write_all(&byte).is_ok() {}
        })?;
        let here = std::thread::Builder::new().name("price".to_owned()).spawn(move || {
            begin(say);
            let mut byte = [0];
            while ordered.recv().is_ok() {
                for _ in 0..ROUNDS {
                    if write_there.write_all(&byte).is_err() || read_back.read_exact(&mut byte).is_err() {
                        return;
                    }
                }
                if tell.send(()).is_err() {
                    return;
                }
            }
        })?;
        let task = || tasks.recv().map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe));
        Ok(Self { tasks: [task()?, task()?], order, done, threads: vec![there, here] })
    }

    pub(super) fn tasks(&self) -> [i32; 2] {
        self.tasks
    }

    /// CPU time of a wake-up, nanoseconds.
    fn turn(&self) -> f64 {
        let begun = cpu_time();
        // A pair that has gone costs nothing, which no turn with it does.
        let _ = self.order.send(());
        let _ = self.done.recv();
        ns(cpu_time().saturating_sub(begun)) as f64 / f64::from(2 * ROUNDS)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let (none, _) = channel();
        drop(std::mem::replace(&mut self.order, none));
        // None of them panics.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// What a system call of this thread takes, nanoseconds.
fn call() -> f64 {
    const TIMES: u32 = 2000;
    let begun = Instant::now();
    for _ in 0..TIMES {
        let _ = rustix::process::getppid();
    }
    begun.elapsed().as_nanos() as f64 / f64::from(TIMES)
}

/// What it adds to `pair`'s wake-ups, and to a system call of this thread, that `record` is told to
/// record, and not to.
pub(super) fn price<E>(pair: &Pair, mut record: impl FnMut(bool) -> Result<(), E>) -> Result<Price, E> {
    let (mut wakes, mut calls) = ([f64::INFINITY; 2], [f64::INFINITY; 2]);
    for turn in 0..2 * TURNS {
        let on = turn % 2 == 1;
        record(on)?;
        let place = usize::from(on);
        wakes[place] = wakes[place].min(pair.turn());
        calls[place] = calls[place].min(call());
    }
    record(false)?;
    Ok(Price { wake_ns: (wakes[1] - wakes[0]).max(0.0), call_ns: (calls[1] - calls[0]).max(0.0) })
}
