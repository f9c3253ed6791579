// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a change at an edge of a recorded program would do, in words.

use std::time::Duration;

use super::style::Style;
use super::table::{Table, number, word};
use super::unit::{Scale, alike, count, time};
use crate::wording::counted;
use doorbell_verdict::what_if::{BUSY, FEWEST, Refusal, STEADY, WhatIf, Within};

/// What was found of a spin at the edge called `letter`, or why nothing was.
pub fn told(letter: &str, spin: Duration, found: &Result<WhatIf, Refusal>, style: &Style) -> String {
    let spin = time(spin.as_nanos() as f64 * 1e3);
    let what_if = match found {
        Ok(what_if) => what_if,
        Err(refusal) => {
            let line =
                format!("What {spin} of spinning at edge {letter} would do is not known: {}.", why(refusal));
            return style.wrap(&line, 0);
        }
    };
    let WhatIf { wakes, caught, p50_now_ns, p50_ns, cpu, busy } = what_if;
    let Within { value, low, high } = p50_ns;
    let ps = |ns: &f64| ns * 1e3;
    let scale = Scale::for_ps([ps(p50_now_ns)]);
    let show = |ns: &f64| scale.show(ps(ns));
    let mut table = Table::new(vec![
        word("What if"),
        word(format!("p50, {}", scale.unit.sign())),
        word("CPU, cores"),
        number("caught"),
    ]);
    let cores = |share: f64| format!("{share:+.3}");
    table.row(vec![
        format!("{letter} spins {spin}"),
        format!("{} → {} [{}, {}]", show(p50_now_ns), show(value), show(low), show(high)),
        format!("{} [{}, {}]", cores(cpu.value), cores(cpu.low), cores(cpu.high)),
        format!("{:.0} %", 100.0 * caught),
    ]);
    let believe = format!(
        "Replayed: {}, of a thread that was awake for {:.0} % of the time; 95 % intervals from resampled stretches of the record. CPU is that of \
         waker and waiter together. p99 is not predicted: what comes while the thread is awake leaves no event.",
        counted(*wakes as u64, "wake-up"),
        100.0 * busy
    );
    table.render(style) + &style.wrap(&believe, 0)
}

fn why(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NoProgram => "the result is of no recorded program; `doorbell trace` makes one".to_owned(),
        Refusal::NoEdge { edges } => {
            format!("it has no such edge, only {}; `doorbell show --details` has their letters", counted(*edges as u64, "edge"))
        }
        Refusal::NotKept => {
            "of so rare an edge the wake-ups are not kept one by one; only those of the first twelve are".to_owned()
        }
        Refusal::TooShort { wakes } => format!(
            "{} of it were recorded, and it takes {}; record for longer with --time",
            counted(*wakes as u64, "wake-up"),
            count(FEWEST as u64)
        ),
        Refusal::Busy { share } => format!(
            "its thread was awake for {:.0} % of the time, and beyond {:.0} % messages queue up, which leaves no event",
            100.0 * share,
            100.0 * BUSY
        ),
        Refusal::Unsteady { halves_ns } => {
            let [first, second] = alike(halves_ns.map(|ns| ns * 1e3));
            format!(
                "the program changed while it was recorded: the median sleep was {first} in the first half and {second} in the second, and \
                 they may differ by a factor of {STEADY}"
            )
        }
        Refusal::OneCpu => "on one CPU a spinning waiter keeps its waker from running".to_owned(),
        Refusal::NoCosts => {
            "the result given with --costs has no back-to-back round trips of both a spinning and a sleeping waiter on two CPUs; \
             `doorbell tune -o FILE` makes one"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_has_both_figures_their_intervals_and_how_far_to_believe_it() {
        let within = |value: f64| Within { value, low: value * 0.9, high: value * 1.1 };
        let what_if = WhatIf {
            wakes: 2000,
            caught: 0.9,
            p50_now_ns: 33_000.0,
            p50_ns: within(300.0),
            cpu: within(0.01),
            busy: 0.04,
        };
        let style = Style { width: 80, color: false, unicode: true };
        let text = told("A", Duration::from_micros(18), &Ok(what_if), &style);
        for part in
            ["A spins 18 µs", "33.0 → 0.300 [0.270, 0.330]", "+0.010 [+0.009, +0.011]", "90 %", "p99 is not"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.lines().all(|line| crate::style::width(line) <= 80), "{text}");
    }

    #[test]
    fn every_refusal_says_why_and_what_to_do_or_what_the_limit_is() {
        for (refusal, part) in [
            (Refusal::NoProgram, "doorbell trace"),
            (Refusal::NoEdge { edges: 2 }, "only 2 edges"),
            (Refusal::NotKept, "first twelve"),
            (Refusal::TooShort { wakes: 3 }, "it takes 300"),
            (Refusal::Busy { share: 0.5 }, "beyond 30 %"),
            (Refusal::Unsteady { halves_ns: [1e3, 2e3] }, "factor of 1.5"),
            (Refusal::OneCpu, "one CPU"),
            (Refusal::NoCosts, "doorbell tune"),
        ] {
            let text = told("B", Duration::from_micros(18), &Err(refusal), &Style::PLAIN);
            // Wherever lines are broken.
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains("at edge B") && text.contains(part), "{text}");
        }
    }
}
