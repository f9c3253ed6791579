// SPDX-License-Identifier: MIT OR Apache-2.0
//! `Adaptive` against fixed policies, over the gap between the waiter's readiness and the ring.
//!
//! For each gap the policies take turns, in blocks. The notifier waits until the waiter has said that it is about to
//! wait, lets the gap pass by spinning, and rings. Latency is from just before the ring to the waiter's first
//! instruction after its wait; CPU is what the waiter's thread used per wait.

use crate::clock::{nanoseconds_per_tick, pin, thread_cpu, ticks};
use crate::statistics::quantile;
use doorbell::wait::{Adaptive, Futex, Spin, Spot, Wait};
use doorbell::{Bell, Deadline, WaitError, sleep_cost};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const GAPS_US: [f64; 14] =
    [0.0, 0.5, 1.0, 2.0, 5.0, 8.0, 12.0, 20.0, 50.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0];
const BLOCKS: u32 = 5;
/// For one block of one policy at one gap.
const BLOCK_TIME: Duration = Duration::from_millis(60);

/// Spins for the price of a sleep, always, and then sleeps: the fixed policy with the best guarantee.
#[derive(Default)]
struct SpinThenSleep(Futex);

impl Wait for SpinThenSleep {
    const NAME: &'static str = "spin-then-sleep";
    fn wait(
        &mut self,
        spots: &mut [Spot<'_>],
        mut ready: impl FnMut() -> bool,
        deadline: Option<Deadline>,
    ) -> Result<bool, WaitError> {
        let start = Instant::now();
        while start.elapsed().as_nanos() < sleep_cost().price.into() {
            for _ in 0..32 {
                if ready() {
                    return Ok(true);
                }
                std::hint::spin_loop();
            }
        }
        self.0.wait(spots, ready, deadline)
    }
}

struct Point {
    latency: f64,
    tail: f64,
    cpu: f64,
}

pub fn run() {
    let cost = sleep_cost();
    println!("# sleep: latency {} ns, price {} ns", cost.latency, cost.price);
    println!("placement,gap_us,policy,latency_p50_ns,latency_p99_ns,waiter_cpu_ns");
    for (placement, cpus) in [("two_cpus", (0, 1)), ("one_cpu", (0, 0))] {
        for gap in GAPS_US {
            let mut points: [Vec<Point>; 4] = Default::default();
            for _ in 0..BLOCKS {
                points[0].push(block::<Adaptive>(gap, cpus));
                points[1].push(block::<SpinThenSleep>(gap, cpus));
                points[2].push(block::<Futex>(gap, cpus));
                // On one CPU a pure spinner holds up the notifier until its time slice ends: minutes for a row.
                if cpus.0 != cpus.1 {
                    points[3].push(block::<Spin>(gap, cpus));
                }
            }
            for (policy, points) in ["adaptive", "spin-then-sleep", "futex", "spin"].iter().zip(&points) {
                let median =
                    |of: fn(&Point) -> f64| quantile(&mut points.iter().map(of).collect::<Vec<_>>(), 0.5);
                if !points.is_empty() {
                    println!(
                        "{placement},{gap},{policy},{:.0},{:.0},{:.0}",
                        median(|point| point.latency),
                        median(|point| point.tail),
                        median(|point| point.cpu)
                    );
                }
            }
        }
    }
}

fn block<W: Wait + Default>(gap_us: f64, cpus: (usize, usize)) -> Point {
    let mut bell: Bell<W> = Bell::new().expect("memory");
    let ringer = bell.clone();
    let (rung_at, waiting) = (AtomicU64::new(0), AtomicU64::new(0));
    let gap = (gap_us * 1000.0 / nanoseconds_per_tick()) as u64;
    let rounds = (BLOCK_TIME.as_secs_f64() * 1e6 / (gap_us + 15.0)).clamp(12.0, 3000.0) as u64;
    thread::scope(|scope| {
        let (rung_at, waiting) = (&rung_at, &waiting);
        scope.spawn(move || {
            pin(cpus.1);
            for round in 1..=rounds {
                while waiting.load(Ordering::Acquire) != round {
                    if cpus.0 == cpus.1 {
                        thread::yield_now();
                    } else {
                        std::hint::spin_loop();
                    }
                }
                // On one CPU the notifier must sleep, for the waiter to get as far as its wait.
                if cpus.0 == cpus.1 && gap_us >= 50.0 {
                    thread::sleep(Duration::from_nanos((gap_us * 1000.0) as u64));
                } else {
                    let start = ticks();
                    while ticks() - start < gap {
                        std::hint::spin_loop();
                    }
                }
                rung_at.store(ticks(), Ordering::Release);
                ringer.ring();
            }
        });
        pin(cpus.0);
        let mut latencies = Vec::with_capacity(rounds as usize);
        let mut cpu = 0;
        for round in 1..=rounds {
            // The first half teaches.
            if round == rounds / 2 {
                latencies.clear();
                cpu = thread_cpu();
            }
            waiting.store(round, Ordering::Release);
            bell.wait().expect("rung");
            let woken_at = ticks();
            let latency = woken_at.saturating_sub(rung_at.load(Ordering::Acquire));
            latencies.push(latency as f64 * nanoseconds_per_tick());
        }
        let cpu = (thread_cpu() - cpu) as f64 / latencies.len() as f64;
        Point { latency: quantile(&mut latencies, 0.5), tail: quantile(&mut latencies, 0.99), cpu }
    })
}
