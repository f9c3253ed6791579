// SPDX-License-Identifier: MIT OR Apache-2.0
//! Workers that load the machine from before a trial until after it.
//!
//! They are children of the trial's host and die with it. Each counts its slices of work in memory
//! that the host reads: that all counts have moved before the trial begins, and move again after it
//! has ended, is the proof that the load covered it.

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::{Load, find};
use crate::arena::Arena;
use crate::fork::fork;
use doorbell_machine::cpu_time::{CpuTimes, TICK_NS};
use doorbell_machine::pressure;
use doorbell_machine::root::Root;
use doorbell_machine::system;
use doorbell_results::machine::cpu_list::CpuList;
use doorbell_results::machine::topology::Topology;
use doorbell_results::record::load::LoadProof;

/// Words between two workers' counts: a pair of cache lines.
const APART: usize = 16;

/// How long workers may take to start, or to do one more slice, on a
/// machine that they overload themselves.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub struct Session {
    root: Root,
    cpus: CpuList,
    workers: Vec<Pid>,
    slices: &'static [AtomicU64],
    started: Instant,
    before: Option<Before>,
}

#[derive(Debug)]
struct Before {
    at: Instant,
    slices: Vec<u64>,
    cpu_ns: u64,
    times: Option<CpuTimes>,
    pressure_ns: Option<u64>,
    run_queue: Vec<u64>,
}

impl Session {
    pub fn start(load: &Load, topology: &Topology) -> io::Result<Self> {
        let kind = find(&load.kind).map_err(io::Error::other)?;
        let count = load.workers as usize;
        let arena = Arena::map((count + 1) * APART * 8 + 4096).map_err(io::Error::other)?;
        let slices = arena.words(count * APART).map_err(io::Error::other)?;
        let mut session = Self {
            root: Root::live(),
            cpus: topology.usable.clone(),
            workers: Vec::with_capacity(count),
            slices,
            started: Instant::now(),
            before: None,
        };
        let usable: Vec<u32> = topology.usable.iter().collect();
        for (worker, own) in slices.chunks(APART).map(|chunk| &chunk[0]).enumerate() {
            let cpu = if load.pinned { usable.get(worker % usable.len().max(1)).copied() } else { None };
            let child = fork(|| {
                if cpu.is_none_or(|cpu| system::pin(cpu).is_ok())
                    && let Ok(mut work) = (kind.begin)()
                {
                    while work().is_ok() {
                        // Pairs with the Acquire load in `counts`.
                        own.fetch_add(1, Release);
                    }
                }
            });
            // What has been started is ended when `session` is dropped.
            session.workers.push(child?);
        }
        session.wait_for_more(&vec![0; count])?;
        session.started = Instant::now();
        Ok(session)
    }

    pub fn begin(&mut self) {
        self.before = Some(Before {
            at: Instant::now(),
            slices: self.counts(),
            cpu_ns: self.cpu_ns(),
            times: CpuTimes::read(&self.root),
            pressure_ns: pressure::cpu_some_ns(&self.root),
            run_queue: running(&self.root).into_iter().collect(),
        });
    }

    pub fn look(&mut self) {
        let running = running(&self.root);
        if let Some(before) = &mut self.before {
            before.run_queue.extend(running);
        }
    }

    /// The trial has ended: what was seen, once every worker has been found at work afterwards.
    pub fn end(mut self) -> io::Result<LoadProof> {
        self.look();
        let Some(before) = self.before.take() else {
            return Err(io::Error::other("the load saw no trial begin"));
        };
        let ended = Instant::now();
        let window_ns = u64::try_from((ended - before.at).as_nanos()).unwrap_or(u64::MAX).max(1);
        let times = CpuTimes::read(&self.root);
        let slices = self.counts();
        let cpu_ns = self.cpu_ns();
        let share = |ns: u64| ns as f64 / window_ns as f64;
        let pressure = before.pressure_ns.zip(pressure::cpu_some_ns(&self.root));
        let busy = |cpu: u32| {
            let (before, after) = before.times.as_ref().zip(times.as_ref())?;
            let one: CpuList = std::iter::once(cpu).collect();
            let wanted =
                after.busy_ns(before, &one, window_ns)?.saturating_add(after.steal_ns(before, &one)?);
            Some((cpu, share(wanted).min(1.0)))
        };
        self.wait_for_more(&slices)?;
        Ok(LoadProof {
            started_before_ns: (before.at - self.started).as_nanos() as u64,
            outlasted_ns: ended.elapsed().as_nanos() as u64,
            fewest_slices: slices.iter().zip(&before.slices).map(|(now, then)| now - then).min().unwrap_or(0),
            cpu_ns: cpu_ns.saturating_sub(before.cpu_ns),
            busy: self.cpus.iter().filter_map(busy).collect(),
            busy_resolution: TICK_NS as f64 / window_ns as f64,
            run_queue: before.run_queue,
            load_average: pressure::load_average(&self.root),
            pressure_share: pressure.map(|(then, now)| share(now.saturating_sub(then))),
        })
    }

    fn counts(&self) -> Vec<u64> {
        // Pairs with the Release additions of the workers.
        self.slices.chunks(APART).map(|chunk| chunk[0].load(Acquire)).collect()
    }

    fn wait_for_more(&self, counts: &[u64]) -> io::Result<()> {
        let start = Instant::now();
        while self.counts().iter().zip(counts).any(|(now, then)| now <= then) {
            if let Some(worker) = self.workers.iter().position(|worker| has_ended(*worker)) {
                return Err(io::Error::other(format!("load worker {worker} ended before it was told to")));
            }
            if start.elapsed() > PATIENCE {
                return Err(io::Error::other(format!(
                    "some of {} load workers did nothing for {PATIENCE:?}: use fewer (--load KIND:WORKERS)",
                    self.workers.len()
                )));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// CPU time of all workers, nanoseconds in whole ticks (proc_pid_stat(5)).
    fn cpu_ns(&self) -> u64 {
        let of = |worker: &Pid| {
            let pid = worker.as_raw_nonzero();
            let stat = self.root.text(format!("proc/{pid}/stat"))?;
            let (_, fields) = stat.rsplit_once(')')?;
            let mut ticks =
                fields.split_ascii_whitespace().skip(11).map_while(|field| field.parse::<u64>().ok());
            Some((ticks.next()? + ticks.next()?).saturating_mul(TICK_NS))
        };
        self.workers.iter().filter_map(of).sum()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for worker in &self.workers {
            // An error means that it is gone already.
            let _ = kill_process(*worker, Signal::KILL);
        }
        for worker in self.workers.drain(..) {
            let _ = waitpid(Some(worker), WaitOptions::empty());
        }
    }
}

/// Whether a child has ended; it stays to be waited for.
fn has_ended(child: Pid) -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(child), look), Ok(None))
}

/// Tasks that run or want to: `procs_running` of `/proc/stat`
/// (proc_stat(5)), the looking task among them.
fn running(root: &Root) -> Option<u64> {
    let text = root.text("proc/stat")?;
    text.lines().find_map(|line| line.strip_prefix("procs_running "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_machine::recorded::Recorded;

    #[test]
    fn a_load_of_every_kind_is_proven_to_have_covered_its_window_and_leaves_no_process() {
        let topology = doorbell_machine::topology::read(&Root::live(), None);
        for kind in super::super::all() {
            let load = Load { kind: kind.name.to_owned(), workers: 2, pinned: kind.name == "cpu" };
            let mut session = Session::start(&load, &topology).unwrap();
            let workers = session.workers.clone();
            session.begin();
            // Until each has worked inside the window, however busy the machine is.
            let counts = session.counts();
            session.wait_for_more(&counts).unwrap();
            let proof = session.end().unwrap();
            assert!(proof.fewest_slices > 0, "{}: {proof:?}", kind.name);
            assert!(proof.run_queue.len() >= 2, "{proof:?}");
            assert_eq!(proof.busy.len(), topology.usable.len());
            assert!(workers.iter().all(|worker| has_ended(*worker)), "{}", kind.name);
        }
    }

    #[test]
    fn a_worker_that_died_is_told_and_not_waited_for() {
        let topology = doorbell_machine::topology::read(&Root::live(), None);
        let load = Load { kind: "sqrt".to_owned(), workers: 2, pinned: false };
        let mut session = Session::start(&load, &topology).unwrap();
        session.begin();
        kill_process(session.workers[1], Signal::KILL).unwrap();
        let error = session.end().unwrap_err();
        assert!(error.to_string().contains("load worker 1 ended"), "{error}");
    }

    #[test]
    fn the_run_queue_is_read_from_a_recorded_machine() {
        let text = "cpu0 1 2 3 4\nprocesses 99\nprocs_running 23\nprocs_blocked 0\n";
        assert_eq!(running(&Recorded::of(&[("proc/stat", text)]).root()), Some(23));
    }
}
