// SPDX-License-Identifier: MIT OR Apache-2.0
//! A load for the whole of a trial: threads that take square roots, from before it until after it.
//!
//! Each counts its slices of work: that all counts have moved before the trial begins, and move
//! again after it has ended, is the proof that the load covered it.

use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use doorbell_results::record::load::LoadProof;

use crate::host::thread_cpu_ns;

/// As the lab calls it.
pub(crate) const KIND: &str = "sqrt";

/// How long workers may take to do one more slice on a machine that they overload themselves.
const PATIENCE: Duration = Duration::from_secs(30);

/// Slices and CPU time of one worker.
#[derive(Default)]
#[repr(align(128))]
struct Own([AtomicU64; 2]);

pub(crate) struct Load {
    over: Arc<AtomicBool>,
    workers: Vec<Arc<Own>>,
    before: Vec<[u64; 2]>,
}

impl Load {
    /// Starts the workers, and waits until each of them has worked.
    pub(crate) fn start(workers: u32) -> io::Result<Self> {
        let mut load = Self { over: Arc::default(), workers: Vec::new(), before: Vec::new() };
        for _ in 0..workers {
            // Where one cannot be made the others end with this.
            load.workers.push(worker(load.over.clone())?);
        }
        load.wait_for_more(&vec![[0; 2]; load.workers.len()])?;
        load.before = load.counts();
        Ok(load)
    }

    /// The trial has ended: what was seen, once each worker has been found at work afterwards.
    pub(crate) fn end(self) -> io::Result<LoadProof> {
        let (ended, after) = (Instant::now(), self.counts());
        self.wait_for_more(&after)?;
        let grown = |field: usize| {
            after.iter().zip(&self.before).map(move |(now, then)| now[field].saturating_sub(then[field]))
        };
        Ok(LoadProof {
            outlasted_ns: ended.elapsed().as_nanos() as u64,
            fewest_slices: grown(0).min().unwrap_or(0),
            cpu_ns: grown(1).sum(),
            ..LoadProof::default()
        })
    }

    fn counts(&self) -> Vec<[u64; 2]> {
        self.workers.iter().map(|own| own.0.each_ref().map(|count| count.load(Relaxed))).collect()
    }

    fn wait_for_more(&self, than: &[[u64; 2]]) -> io::Result<()> {
        let ends = Instant::now() + PATIENCE;
        while self.counts().iter().zip(than).any(|(now, then)| now[0] <= then[0]) {
            if Instant::now() > ends {
                return Err(io::Error::other(format!("a worker of the load did nothing for {PATIENCE:?}")));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
    }
}

fn worker(over: Arc<AtomicBool>) -> io::Result<Arc<Own>> {
    let own = Arc::new(Own::default());
    let counts = own.clone();
    thread::Builder::new().spawn(move || {
        while !over.load(Relaxed) {
            black_box((0..100_000).fold(0.0, |sum, number| sum + f64::from(black_box(number)).sqrt()));
            counts.0[1].store(thread_cpu_ns(), Relaxed);
            counts.0[0].fetch_add(1, Relaxed);
        }
    })?;
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_proves_that_every_worker_worked_before_during_and_after() {
        let load = Load::start(3).unwrap();
        let before = load.counts();
        load.wait_for_more(&before).unwrap();
        let proof = load.end().unwrap();
        assert!(proof.fewest_slices > 0, "{proof:?}");
        assert!(proof.outlasted_ns > 0, "{proof:?}");
    }
}
