// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the bell may cost beyond the same thing written by hand.

use crate::arm::{Arm, Block, epoll, futex, ring_nobody, spin};
use crate::raw::Raw;
use rivals_rounds::lot::Lot;
use rivals_rounds::partner::Place::{Processes, Threads};
use rivals_rounds::statistics::{Ratio, quantile};

/// One thing against another, and the most that the first may cost.
struct Bar {
    name: String,
    arms: [Box<dyn Arm>; 2],
    at_most: f64,
    /// Of a block: some 3 ms.
    count: u32,
    blocks: [Vec<Block>; 2],
}

const SIDES: [&str; 2] = ["bell", "by hand"];

/// The bars. Those with a forked partner come first: forking is better done before there are threads.
fn bars(cpus: (usize, usize)) -> Result<Vec<Bar>, String> {
    let (one, two) = ((cpus.0, cpus.0), cpus);
    // On one CPU there is no second to measure with.
    let placements: &[_] =
        if cpus.0 == cpus.1 { &[(one, "one core")] } else { &[(one, "one core"), (two, "two cores")] };
    let mut bars = Vec::new();
    let mut add = |name: String, arms, at_most, count| {
        bars.push(Bar { name, arms, at_most, count, blocks: [Vec::new(), Vec::new()] });
    };
    for (place, places) in [(Processes, "processes"), (Threads, "threads")] {
        for &(cpus, cores) in placements {
            let arms = [futex::bell(place, cpus)?, futex::by_hand(place, cpus)?];
            add(format!("futex round trip, {places}, {cores}"), arms, 1.05, 400);
        }
    }
    for &(cpus, cores) in placements {
        add(
            format!("epoll round trip, threads, {cores}"),
            [epoll::bell(cpus)?, epoll::by_hand(cpus)?],
            1.05,
            300,
        );
    }
    if cpus.0 != cpus.1 {
        add(
            "spinning round trip, threads, two cores".to_owned(),
            [spin::bell(two)?, spin::by_hand(two)?],
            1.15,
            15_000,
        );
    }
    let arms = [ring_nobody::bell(cpus.0)?, ring_nobody::by_hand(cpus.0)?];
    add("ring with nobody waiting / fence and load".to_owned(), arms, 1.2, 200_000);
    Ok(bars)
}

/// Runs them all and prints a table. Returns how many bars were missed.
///
/// # Errors
/// What is missing, or what became of a partner.
pub fn run(rounds: usize, cpus: (usize, usize), raw: &mut Raw) -> Result<usize, String> {
    let mut bars = bars(cpus)?;
    let mut lot = Lot::new(1);
    // One round to warm up.
    for round in 0..=rounds {
        for at in lot.order(bars.len()) {
            let bar = &mut bars[at];
            // Neighbours in time: what slows the cores slows both.
            for side in lot.order(2) {
                let block = bar.arms[side].block(bar.count)?;
                if round > 0 {
                    raw.bar(
                        &bar.name,
                        SIDES[side],
                        round,
                        quantile(&mut block.nanoseconds.clone(), 0.5),
                        block.cpu,
                    )?;
                    bar.blocks[side].push(block);
                }
            }
        }
    }
    println!("| | bell: p50 ns | p99.9 | CPU | by hand: p50 ns | p99.9 | CPU | ratio [95 %] | bar | |");
    println!("|---|---:|---:|---:|---:|---:|---:|---|---:|---|");
    let mut missed = 0;
    for bar in &bars {
        let ratio = Ratio::paired(&medians(&bar.blocks[0]), &medians(&bar.blocks[1]));
        let verdict = if ratio.high <= bar.at_most {
            "held"
        } else if ratio.low > bar.at_most {
            missed += 1;
            "**missed**"
        } else {
            "undecided"
        };
        let Ratio { low, middle, high } = ratio;
        println!(
            "| {} | {} | {} | {middle:.3} [{low:.3}, {high:.3}] | {:.2} | {verdict} |",
            bar.name,
            summary(&bar.blocks[0]),
            summary(&bar.blocks[1]),
            bar.at_most
        );
    }
    println!();
    Ok(missed)
}

fn medians(blocks: &[Block]) -> Vec<f64> {
    blocks.iter().map(|block| quantile(&mut block.nanoseconds.clone(), 0.5)).collect()
}

fn summary(blocks: &[Block]) -> String {
    let mut all: Vec<f64> = blocks.iter().flat_map(|block| block.nanoseconds.iter().copied()).collect();
    let mut cpu: Vec<f64> = blocks.iter().map(|block| block.cpu).collect();
    let middle = quantile(&mut medians(blocks), 0.5);
    format!("{middle:.1} | {:.0} | {:.0}", quantile(&mut all, 0.999), quantile(&mut cpu, 0.5))
}
