// SPDX-License-Identifier: MIT OR Apache-2.0
//! `Adaptive` against fixed policies, over the gap between the waiter's readiness and the ring.
//!
//! In each round every policy has a block at every gap, in shuffled order. The notifier waits until
//! the waiter has said that it is about to wait, lets the gap pass, and rings. Latency is from just
//! before the ring to the waiter's first instruction after its wait; CPU is what the waiter's
//! thread used for one wait, and what the ring took.

use crate::arguments::Common;
use crate::clock::{nanoseconds_per_tick, pin, thread_cpu, ticks};
use crate::raw::Raw;
use crate::rounds::rounds;
use crate::shuffle::Shuffle;
use crate::statistics::{Ratio, Stands, quantile};
use crate::table::Table;
use doorbell::wait::{Adaptive, Futex, Spin, Wait, WaitEntry};
use doorbell::{Bell, Deadline, WaitError, sleep_cost};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const GAPS_US: [f64; 9] = [0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 10_000.0];
/// For one block of one policy at one gap, if it can hold enough waits.
const BLOCK_TIME: Duration = Duration::from_millis(15);
const FEWEST_WAITS: f64 = 8.0;
const MOST_WAITS: f64 = 1000.0;
/// What adaptive may cost beyond the best fixed policy at a gap.
const LATENCY_AT_MOST: f64 = 1.1;
const CPU_AT_MOST: f64 = 2.0;

/// Spins for the price of a sleep, always, and then sleeps: pure spinning within the budget.
#[derive(Default)]
struct SpinThenSleep(Futex);

impl Wait for SpinThenSleep {
    const NAME: &'static str = "spin-then-sleep";
    fn wait(
        &mut self,
        entries: &mut [WaitEntry<'_>],
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
        self.0.wait(entries, ready, deadline)
    }
}

/// One block.
#[derive(Clone, Copy)]
struct Point {
    middle: f64,
    tail: f64,
    cpu: f64,
}

/// A policy, its bell kept from block to block, so that what it has learned stays.
struct Policy {
    name: &'static str,
    block: Box<dyn FnMut(f64, (usize, usize)) -> Point>,
}

fn policy<W: Wait + Default + 'static>(name: &'static str) -> Result<Policy, String> {
    let mut bell: Bell<W> = Bell::new().map_err(|error| error.to_string())?.waiting_by();
    Ok(Policy { name, block: Box::new(move |gap, cpus| block(&mut bell, gap, cpus)) })
}

fn policies(spin_alone: bool) -> Result<Vec<Policy>, String> {
    let mut all = vec![
        policy::<Adaptive>("adaptive")?,
        policy::<SpinThenSleep>("spin, then sleep")?,
        policy::<Futex>("sleep")?,
    ];
    // On one CPU a pure spinner holds up the notifier until its time slice ends: minutes for a row.
    if spin_alone {
        all.push(policy::<Spin>("spin")?);
    }
    Ok(all)
}

/// Runs them all and prints a table for each placement. Returns at
/// how many gaps adaptive missed a bar.
pub fn run(arguments: &Common, cpus: (usize, usize), raw: &mut Raw) -> anyhow::Result<usize> {
    let cost = sleep_cost();
    println!("A sleep here: latency {} ns, price {} ns.\n", cost.latency, cost.price);
    let mut missed = 0;
    let placements = [("two cores", cpus), ("one core", (cpus.0, cpus.0))];
    for (placement, cpus) in placements.into_iter().filter(|(name, _)| arguments.wants(name)) {
        let shared = cpus.0 == cpus.1;
        if placement == "two cores" && shared {
            println!("One CPU: nothing is run on two.\n");
            continue;
        }
        // A bell for each gap: what is learned at one is wrong at another.
        let configurations = GAPS_US.iter().map(|_| policies(!shared)).collect::<Result<Vec<_>, _>>();
        let mut configurations = configurations.map_err(anyhow::Error::msg)?;
        let groups: Vec<usize> = configurations.iter().map(Vec::len).collect();
        let mut points: Vec<Vec<Vec<Point>>> =
            groups.iter().map(|variants| vec![Vec::new(); *variants]).collect();
        rounds(&mut Shuffle::new(arguments.seed.into()), arguments.rounds_or(10), &groups, |turn| {
            let (gap_us, policy) = (GAPS_US[turn.group], &mut configurations[turn.group][turn.variant]);
            let point = (policy.block)(gap_us, cpus);
            raw.line(&json!({
                "placement": placement, "gap_us": gap_us, "policy": policy.name, "round": turn.round,
                "p50_ns": point.middle, "p99_ns": point.tail, "cpu_ns": point.cpu,
            }))?;
            points[turn.group][turn.variant].push(point);
            anyhow::Ok(())
        })?;
        let of_one =
            |policy: &Policy| [format!(">{}: p50 ns", policy.name), ">p99".to_owned(), ">CPU".to_owned()];
        let heads = configurations[0].iter().flat_map(of_one);
        let ratios = ["latency / better", "CPU / best", ""].map(str::to_owned);
        let mut table = Table::new([">gap".to_owned()].into_iter().chain(heads).chain(ratios));
        for (gap, points) in GAPS_US.iter().zip(&points) {
            let latency = against_best(&points[..3], |point| point.middle);
            let cpu = against_best(points, |point| point.cpu);
            let verdict = verdict(latency, cpu);
            missed += usize::from(verdict.contains("missed"));
            let figures = points.iter().flat_map(|of| summary(of));
            let ratios = [latency.to_string(), cpu.to_string(), verdict.to_owned()];
            table.row([format!("{gap} µs")].into_iter().chain(figures).chain(ratios));
        }
        println!("### {placement}\n\n{table}");
    }
    Ok(missed)
}

/// The first variant against the best of the others, which is chosen by its median over all rounds.
fn against_best(points: &[Vec<Point>], of: fn(&Point) -> f64) -> Ratio {
    let values = |points: &Vec<Point>| points.iter().map(of).collect::<Vec<f64>>();
    let fixed: Vec<Vec<f64>> = points[1..].iter().map(values).collect();
    let best = fixed
        .iter()
        .min_by(|a, b| quantile(&mut (*a).clone(), 0.5).total_cmp(&quantile(&mut (*b).clone(), 0.5)))
        .expect("there are fixed policies");
    Ratio::paired(&values(&points[0]), best)
}

fn verdict(latency: Ratio, cpu: Ratio) -> &'static str {
    match (latency.stands(0.0, LATENCY_AT_MOST), cpu.stands(0.0, CPU_AT_MOST)) {
        (Stands::Above, _) => "**missed: latency**",
        (_, Stands::Above) => "**missed: CPU**",
        (Stands::Within, Stands::Within) => "held",
        _ => "inconclusive",
    }
}

fn summary(points: &[Point]) -> [String; 3] {
    let figures: [fn(&Point) -> f64; 3] = [|point| point.middle, |point| point.tail, |point| point.cpu];
    figures.map(|of| format!("{:.0}", quantile(&mut points.iter().map(of).collect::<Vec<_>>(), 0.5)))
}

fn block<W: Wait + Default>(bell: &mut Bell<W>, gap_us: f64, cpus: (usize, usize)) -> Point {
    let ringer = bell.clone();
    let (rung_at, waiting) = (AtomicU64::new(0), AtomicU64::new(0));
    let gap = (gap_us * 1000.0 / nanoseconds_per_tick()) as u64;
    let waits = (BLOCK_TIME.as_secs_f64() * 1e6 / (gap_us + 15.0)).clamp(FEWEST_WAITS, MOST_WAITS) as u64;
    // The first ones find the CPUs and the window as another block left them.
    let taught = waits / 4;
    thread::scope(|scope| {
        let (rung_at, waiting) = (&rung_at, &waiting);
        let notifier = scope.spawn(move || {
            pin(cpus.1);
            let mut ringing = 0;
            let start = thread_cpu();
            let reading = thread_cpu() - start;
            for wait in 1..=waits {
                while waiting.load(Ordering::Acquire) != wait {
                    if cpus.0 == cpus.1 {
                        thread::yield_now();
                    } else {
                        std::hint::spin_loop();
                    }
                }
                // On one CPU the notifier must sleep, for the waiter to get as far as its wait.
                if cpus.0 == cpus.1 && gap_us >= 30.0 {
                    thread::sleep(Duration::from_nanos((gap_us * 1000.0) as u64));
                } else {
                    let start = ticks();
                    while ticks() - start < gap {
                        std::hint::spin_loop();
                    }
                }
                let start = thread_cpu();
                rung_at.store(ticks(), Ordering::Release);
                ringer.ring();
                if wait > taught {
                    ringing += (thread_cpu() - start).saturating_sub(reading);
                }
            }
            ringing
        });
        pin(cpus.0);
        let mut latencies = Vec::with_capacity(waits as usize);
        let mut cpu = thread_cpu();
        for wait in 1..=waits {
            if wait == taught + 1 {
                latencies.clear();
                cpu = thread_cpu();
            }
            waiting.store(wait, Ordering::Release);
            bell.wait().expect("rung");
            let woken_at = ticks();
            let latency = woken_at.saturating_sub(rung_at.load(Ordering::Acquire));
            latencies.push(latency as f64 * nanoseconds_per_tick());
        }
        let cpu = thread_cpu() - cpu + notifier.join().expect("it does not panic");
        let cpu = cpu as f64 / latencies.len() as f64;
        Point { middle: quantile(&mut latencies, 0.5), tail: quantile(&mut latencies, 0.99), cpu }
    })
}
