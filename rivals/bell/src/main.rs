// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bell against the same thing written by hand, in interleaved blocks of one run.
//!
//! `cargo run --release -- [bars|curves]`, on an idle machine; the status is 1 if a bar is missed.

mod arm;
mod clock;
mod curves;
mod statistics;

use arm::{Arm, Block};
use statistics::{Ratio, quantile};
use std::process::ExitCode;

/// One thing measured against another, and the most that the first may cost.
struct Bar {
    name: &'static str,
    bell: Box<dyn Arm>,
    bare: Box<dyn Arm>,
    at_most: f64,
    rounds: u32,
}

/// Blocks of each arm. The arms alternate, and swap who goes first from pair to pair.
const PAIRS: u32 = 60;

fn bars() -> Vec<Bar> {
    let (one, two) = ((0, 0), (0, 1));
    let mut bars = vec![Bar {
        name: "ring, nobody waiting / fence + load",
        bell: arm::ring_nobody::bell(),
        bare: arm::ring_nobody::bare(),
        at_most: 1.2,
        rounds: 100_000,
    }];
    for (cpus, name) in [(one, "futex round trip, one CPU"), (two, "futex round trip, two CPUs")] {
        let (bell, bare) = (arm::futex::bell(cpus), arm::futex::bare(cpus));
        bars.push(Bar { name, bell, bare, at_most: 1.05, rounds: 1500 });
    }
    for (cpus, name) in [(one, "epoll round trip, one CPU"), (two, "epoll round trip, two CPUs")] {
        let (bell, bare) = (arm::epoll::bell(cpus), arm::epoll::bare(cpus));
        bars.push(Bar { name, bell, bare, at_most: 1.05, rounds: 1500 });
    }
    let (bell, bare) = (arm::spin::bell(two), arm::spin::bare(two));
    bars.push(Bar { name: "spinning round trip, two CPUs", bell, bare, at_most: 1.15, rounds: 30_000 });
    bars
}

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        None | Some("bars") => run_bars(),
        Some("curves") => {
            curves::run();
            ExitCode::SUCCESS
        }
        Some(other) => {
            eprintln!("no such thing to run: {other}; there are bars and curves");
            ExitCode::from(2)
        }
    }
}

fn run_bars() -> ExitCode {
    println!("each cell: median of the block medians, p99.9 over all, CPU time of both sides; nanoseconds");
    println!("{:<38} {:>24} {:>24}  ratio of medians [95 %]   bar", "", "bell", "by hand");
    let mut missed = 0;
    for mut bar in bars() {
        let (mut bell, mut bare) = (Vec::new(), Vec::new());
        // One pair to warm up.
        for pair in 0..=PAIRS {
            let bell_first = pair % 2 == 0;
            let first = if bell_first { &mut bar.bell } else { &mut bar.bare }.block(bar.rounds);
            let second = if bell_first { &mut bar.bare } else { &mut bar.bell }.block(bar.rounds);
            let (of_bell, of_bare) = if bell_first { (first, second) } else { (second, first) };
            if pair > 0 {
                bell.push(of_bell);
                bare.push(of_bare);
            }
        }
        let ratio = Ratio::of(&medians(&bell), &medians(&bare));
        // Missed only if the whole interval lies beyond the bar; held only if it lies within.
        let verdict = match () {
            () if ratio.high <= bar.at_most => "held",
            () if ratio.low > bar.at_most => {
                missed += 1;
                "MISSED"
            }
            () => "not decided",
        };
        println!(
            "{:<38} {} {}  {:.3} [{:.3}, {:.3}]   <= {:.2}: {verdict}",
            bar.name,
            summary(&bell),
            summary(&bare),
            ratio.middle,
            ratio.low,
            ratio.high,
            bar.at_most
        );
    }
    ExitCode::from(u8::from(missed > 0))
}

fn medians(blocks: &[Block]) -> Vec<f64> {
    blocks.iter().map(|block| quantile(&mut block.nanoseconds.clone(), 0.5)).collect()
}

fn summary(blocks: &[Block]) -> String {
    let middle = quantile(&mut medians(blocks), 0.5);
    let mut all: Vec<f64> = blocks.iter().flat_map(|block| block.nanoseconds.iter().copied()).collect();
    let mut cpu: Vec<f64> = blocks.iter().map(|block| block.cpu_nanoseconds).collect();
    format!("{middle:>8.1} {:>8.0} {:>6.0}", quantile(&mut all, 0.999), quantile(&mut cpu, 0.5))
}
