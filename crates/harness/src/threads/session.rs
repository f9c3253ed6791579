// SPDX-License-Identifier: MIT OR Apache-2.0
//! Workers that load the machine from before a trial until after it, as threads of its host.
//!
//! Each counts its slices of work: that all counts have moved before the trial begins, and move again after it has ended, is the proof that
//! the load covered it. How busy each CPU was is not known here.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::{Load, find};
use crate::task;
use doorbell_results::machine::topology::Topology;
use doorbell_results::record::load::LoadProof;

/// How long workers may take to start, or to do one more slice, on a machine that they overload themselves.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(2);

/// What one worker writes, alone on a pair of cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Own {
    slices: AtomicU64,
    cpu_ns: AtomicU64,
}

#[derive(Debug)]
pub struct Session {
    over: Arc<AtomicBool>,
    workers: Vec<Arc<Own>>,
    /// When all were seen at work.
    started: Instant,
    before: Option<(Instant, Vec<[u64; 2]>)>,
}

impl Session {
    /// Starts the workers and waits until every one of them works.
    pub fn start(load: &Load, topology: &Topology) -> io::Result<Self> {
        let kind = find(&load.kind).map_err(io::Error::other)?;
        let usable: Vec<u32> = topology.usable.iter().collect();
        let over = Arc::new(AtomicBool::new(false));
        let mut session = Self { over, workers: Vec::new(), started: Instant::now(), before: None };
        for worker in 0..load.workers as usize {
            let cpu = if load.pinned { usable.get(worker % usable.len().max(1)).copied() } else { None };
            let own = Arc::new(Own::default());
            session.workers.push(own.clone());
            let over = session.over.clone();
            // A thread that cannot be pinned or does no work is missed below.
            Builder::new().spawn(move || {
                if cpu.is_none_or(|cpu| doorbell_machine::system::pin(cpu).is_ok())
                    && let Ok(mut work) = kind.begin()
                {
                    while !over.load(Relaxed) && work.slice().is_ok() {
                        own.cpu_ns.store(task::cpu_ns(), Relaxed);
                        // Pairs with the Acquire load in `counts`.
                        own.slices.fetch_add(1, Release);
                    }
                }
            })?;
        }
        session.wait_for_more(&vec![[0; 2]; session.workers.len()])?;
        session.started = Instant::now();
        Ok(session)
    }

    pub fn begin(&mut self) {
        self.before = Some((Instant::now(), self.counts()));
    }

    /// The trial has ended: what was seen, once every worker has been found at work afterwards.
    pub fn end(mut self) -> io::Result<LoadProof> {
        let Some((at, before)) = self.before.take() else {
            return Err(io::Error::other("the load saw no trial begin"));
        };
        let (ended, after) = (Instant::now(), self.counts());
        self.wait_for_more(&after)?;
        let grown = |field: usize| {
            after.iter().zip(&before).map(move |(now, then)| now[field].saturating_sub(then[field]))
        };
        Ok(LoadProof {
            started_before_ns: (at - self.started).as_nanos() as u64,
            outlasted_ns: ended.elapsed().as_nanos() as u64,
            fewest_slices: grown(0).min().unwrap_or(0),
            cpu_ns: grown(1).sum(),
            busy: std::collections::BTreeMap::new(),
            busy_resolution: 0.0,
            run_queue: Vec::new(),
            load_average: None,
            pressure_share: None,
        })
    }

    fn counts(&self) -> Vec<[u64; 2]> {
        // Pairs with the Release increments of the workers.
        self.workers.iter().map(|own| [own.slices.load(Acquire), own.cpu_ns.load(Relaxed)]).collect()
    }

    fn wait_for_more(&self, than: &[[u64; 2]]) -> io::Result<()> {
        let start = Instant::now();
        while self.counts().iter().zip(than).any(|(now, then)| now[0] <= then[0]) {
            if start.elapsed() > PATIENCE {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "a worker of the load does no work"));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
    }
}
