// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the bell may cost beyond the same thing written by hand.

use crate::arguments::Common;
use crate::bell::variant::{Block, Variant, bells, epoll, futex, ring_nobody, spin};
use crate::partner::Place::{Processes, Threads};
use crate::raw::Raw;
use crate::rounds::rounds;
use crate::shuffle::Shuffle;
use crate::statistics::{Ratio, Stands, quantile};
use crate::table::Table;
use doorbell::wait::{Futex, Spin};
use serde_json::json;

/// One thing against another, and the most that the first may cost.
struct Bar {
    name: String,
    variants: [Box<dyn Variant>; 2],
    at_most: f64,
    /// Of a block: some 3 ms.
    count: u32,
    blocks: [Vec<Block>; 2],
}

const SIDES: [&str; 2] = ["bell", "by hand"];

/// The bars. Those with a forked partner come first: forking is
/// better done before there are threads.
fn bars(cpus: (usize, usize)) -> Result<Vec<Bar>, String> {
    let (one, two) = ((cpus.0, cpus.0), cpus);
    // On one CPU there is no second to measure with.
    let placements: &[_] =
        if cpus.0 == cpus.1 { &[(one, "one core")] } else { &[(one, "one core"), (two, "two cores")] };
    let mut bars = Vec::new();
    let mut add = |name: String, variants, at_most, count| {
        bars.push(Bar { name, variants, at_most, count, blocks: [Vec::new(), Vec::new()] });
    };
    for (place, places) in [(Processes, "processes"), (Threads, "threads")] {
        for &(cpus, cores) in placements {
            let variants = [bells::<Futex>(place, cpus, 1)?, futex::by_hand(place, cpus)?];
            add(format!("futex round trip, {places}, {cores}"), variants, 1.05, 400);
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
            [bells::<Spin>(Threads, two, spin::GROUP)?, spin::by_hand(two)?],
            1.15,
            15_000,
        );
    }
    let variants = [ring_nobody::bell(cpus.0)?, ring_nobody::by_hand(cpus.0)?];
    add("ring with nobody waiting / fence and load".to_owned(), variants, 1.2, 200_000);
    Ok(bars)
}

/// Runs them all and prints a table. Returns how many bars were missed.
pub fn run(arguments: &Common, cpus: (usize, usize), raw: &mut Raw) -> anyhow::Result<usize> {
    let mut bars = bars(cpus).map_err(anyhow::Error::msg)?;
    bars.retain(|bar| arguments.wants(&bar.name));
    // One round to warm up.
    let all_rounds = arguments.rounds_or(200) + 1;
    rounds(&mut Shuffle::new(arguments.seed.into()), all_rounds, &vec![2; bars.len()], |turn| {
        let bar = &mut bars[turn.group];
        let block = bar.variants[turn.variant].block(bar.count).map_err(anyhow::Error::msg)?;
        if turn.round > 0 {
            let p50_ns = quantile(&mut block.nanoseconds.clone(), 0.5);
            raw.line(&json!({
                "bar": bar.name, "side": SIDES[turn.variant], "round": turn.round, "p50_ns": p50_ns, "cpu_ns": block.cpu,
            }))?;
            bar.blocks[turn.variant].push(block);
        }
        anyhow::Ok(())
    })?;
    let heads = [
        "",
        ">bell: p50 ns",
        ">p99.9",
        ">CPU",
        ">by hand: p50 ns",
        ">p99.9",
        ">CPU",
        "ratio [95 %]",
        ">bar",
        "",
    ];
    let (mut table, mut missed) = (Table::new(heads), 0);
    for bar in &bars {
        let ratio = Ratio::paired(&medians(&bar.blocks[0]), &medians(&bar.blocks[1]));
        let verdict = match ratio.stands(0.0, bar.at_most) {
            Stands::Within | Stands::Below => "held",
            Stands::Above => {
                missed += 1;
                "**missed**"
            }
            Stands::Undecided => "inconclusive",
        };
        let [bell, by_hand] = [0, 1].map(|side| summary(&bar.blocks[side]));
        let figures =
            bell.into_iter().chain(by_hand).chain([format!("{ratio:.3}"), format!("{:.2}", bar.at_most)]);
        table.row([bar.name.clone()].into_iter().chain(figures).chain([verdict.to_owned()]));
    }
    println!("{table}");
    Ok(missed)
}

fn medians(blocks: &[Block]) -> Vec<f64> {
    blocks.iter().map(|block| quantile(&mut block.nanoseconds.clone(), 0.5)).collect()
}

fn summary(blocks: &[Block]) -> [String; 3] {
    let mut all: Vec<f64> = blocks.iter().flat_map(|block| block.nanoseconds.iter().copied()).collect();
    let mut cpu: Vec<f64> = blocks.iter().map(|block| block.cpu).collect();
    let middle = quantile(&mut medians(blocks), 0.5);
    [
        format!("{middle:.1}"),
        format!("{:.0}", quantile(&mut all, 0.999)),
        format!("{:.0}", quantile(&mut cpu, 0.5)),
    ]
}
